package controllers

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestLeaseOfAShard: the operators of different shards lead at the same time.
func TestLeaseOfAShard(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, selector := range []string{"", "mnemo.dev/shard=a", "mnemo.dev/shard=b", "mnemo.dev/shard notin (a,b)"} {
		parsed, err := labels.Parse(selector)
		if err != nil {
			t.Fatal(err)
		}
		name := leaseOf(parsed)
		if selector == "" && name != leaseName {
			t.Errorf("the lease for all Tenants is %s, want %s", name, leaseName)
		}
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
		names[name] = true
	}
	if len(names) != 4 {
		t.Errorf("4 selectors have the leases %v, want different ones", names)
	}
}

// TestRetriesAreLimited: a thousand Tenants fail at once, as during an outage of a
// store, and one fails repeatedly.
func TestRetriesAreLimited(t *testing.T) {
	t.Parallel()
	limiter, last := rateLimiter(), time.Duration(0)
	for i := range 1000 {
		last = limiter.When(reconcile.Request{NamespacedName: types.NamespacedName{Name: fmt.Sprint(i)}})
	}
	if want := (1000 - retriesBurst) / retriesSecond * time.Second; last < want*9/10 || last > want*11/10 {
		t.Errorf("the last of 1000 is retried after %v, want about %v", last, want)
	}
	one := rateLimiter()
	for i := range 12 {
		if last = one.When(reconcile.Request{}); i == 0 && last != backoffBase {
			t.Errorf("got first retry after %v, want %v", last, backoffBase)
		}
	}
	if last != backoffMax {
		t.Errorf("got last retry after %v, want %v", last, backoffMax)
	}
}
