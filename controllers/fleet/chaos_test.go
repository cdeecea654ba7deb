package fleet_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
)

const (
	chaosSeed  = 20261121
	chaosKills = 8 // MNEMO_CHAOS_KILLS for more
	chaosNames = 12
)

// TestKilledAtAnyMoment kills the operator at random moments while Tenants are
// made, changed and deleted. In the end Kubernetes, PostgreSQL and Milvus hold
// what the Tenants say and nothing else.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	kills := chaosKills
	if n, err := strconv.Atoi(os.Getenv("MNEMO_CHAOS_KILLS")); err == nil {
		kills = n
	}
	t.Logf("seed %d, %d kills", chaosSeed, kills)
	f := newFleet(t)
	stop := make(chan struct{})
	var wait sync.WaitGroup
	changes := 0
	wait.Go(func() {
		r := rand.New(rand.NewPCG(chaosSeed, 1))
		for pause := time.NewTicker(40 * time.Millisecond); ; {
			select {
			case <-stop:
				return
			case <-pause.C:
				f.change(t, r)
				changes++
			}
		}
	})
	r := rand.New(rand.NewPCG(chaosSeed, 2))
	for range kills {
		o := f.start(t)
		select {
		case <-time.After(time.Duration(100+r.IntN(2400)) * time.Millisecond):
		case <-o.ended:
			t.Errorf("the operator ended by itself:\n%s", o.log)
		}
		o.kill()
	}
	close(stop)
	wait.Wait()
	o := f.start(t)
	look := f.look(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last operator's log:\n%.8000s", o.log)
		}
	})
	eventually(t, patience, func() string { return f.problems(t, look) })
	var left v1alpha1.TenantList
	if err := f.List(t.Context(), &left, client.InNamespace(f.ns)); err != nil || len(left.Items) == 0 {
		t.Errorf("%d Tenants are left (%v): the end shows nothing", len(left.Items), err)
	}
	t.Logf("%d changes, %d Tenants in the end", changes, len(left.Items))
}

// change makes, changes or deletes a Tenant. Who is refused, because of the
// operator's own writes or a deletion under way, has changed nothing.
func (f *fleet) change(t *testing.T, r *rand.Rand) {
	t.Helper()
	tn := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: fmt.Sprint("t", r.IntN(chaosNames))}}
	if f.Get(t.Context(), client.ObjectKeyFromObject(tn), tn) != nil {
		tn.Spec.DeletionPolicy = v1alpha1.Delete
		f.vary(tn, r)
		_ = f.Create(t.Context(), tn)
		return
	}
	if r.IntN(4) == 0 {
		_ = f.Delete(t.Context(), tn)
		return
	}
	f.vary(tn, r)
	_ = f.Update(t.Context(), tn)
}

func (f *fleet) vary(tn *v1alpha1.Tenant, r *rand.Rand) {
	tn.Spec.Quota.Memories = new(r.Int64N(1000))
	tn.Spec.Isolation = v1alpha1.Partition
	if r.IntN(4) == 0 {
		tn.Spec.Isolation = v1alpha1.Shared
	}
	before := map[string]int64{}
	for _, u := range tn.Spec.Users {
		before[u.Name] = u.TokenGeneration
	}
	tn.Spec.Users = nil
	for _, name := range []string{"alice", "bob", "carol"} {
		if r.IntN(3) > 0 {
			tn.Spec.Users = append(tn.Spec.Users, v1alpha1.TenantUser{Name: name, TokenGeneration: max(1, before[name]) + r.Int64N(2)})
		}
	}
}
