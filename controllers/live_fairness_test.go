package controllers_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/controllers"
)

const (
	rotatingTenants = 4
	rotatingUsers   = 400
	revocations     = 20
	// maxRevocation is generous for a busy machine: docs/operations.md has the time
	// measured on an idle one.
	maxRevocation = 3 * time.Second
)

// TestRevocationWhileOthersRotate: revoking a token does not wait for tenants that
// replace the tokens of all their users. With -v it prints the times.
func TestRevocationWhileOthersRotate(t *testing.T) { //nolint:paralleltest // the operator's metrics are the process's
	l := newLive(t, 1)
	l.operate(controllers.Config{Resync: time.Hour})
	key := func(name string) types.NamespacedName {
		return types.NamespacedName{Namespace: l.namespaces[0], Name: name}
	}
	get := func(name string) *v1alpha1.Tenant {
		t.Helper()
		tn := &v1alpha1.Tenant{}
		if err := l.Get(t.Context(), key(name), tn); err != nil {
			t.Fatal(err)
		}
		return tn
	}
	var users []string
	for i := range rotatingUsers {
		users = append(users, fmt.Sprintf(`{"name":"user%d"}`, i))
	}
	large := make([]string, rotatingTenants)
	for i := range large {
		large[i] = fmt.Sprintf("large-%d", i)
		l.apply(t, key(large[i]), `{"quota":{"users":1000},"users":[`+strings.Join(users, ",")+`]}`)
	}
	l.apply(t, key("small"), `{"users":[{"name":"alice"}],"quota":{`+unlimitedRate+`}}`)
	created := waitFor(t, "all users created", func() bool {
		return l.token(t, key("small"), "alice") != "" && !slices.ContainsFunc(large, func(name string) bool {
			counts := get(name).Status.UserCounts
			return counts == nil || counts.Ready < rotatingUsers
		})
	})
	t.Logf("%d tenants of %d users created in %v", rotatingTenants, rotatingUsers, created)

	round, begun := 0, time.Time{}
	rotated := func(name string) bool { return get(name).Status.Rotated == fmt.Sprint(round) }
	var took []time.Duration
	for generation := 2; len(took) < revocations; generation++ {
		if !slices.ContainsFunc(large, func(name string) bool { return !rotated(name) }) || round == 0 {
			if round > 0 {
				t.Logf("%d tenants of %d users rotated in %v", rotatingTenants, rotatingUsers, time.Since(begun))
			}
			round, begun = round+1, time.Now()
			for _, name := range large {
				l.patch(t, key(name), fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, v1alpha1.AnnotationRotate, round))
			}
			waitFor(t, "rotations started", func() bool {
				return !slices.ContainsFunc(large, func(name string) bool { return l.firstRotated(t, key(name)) != fmt.Sprint(round) })
			})
		}
		old := l.token(t, key("small"), "alice")
		l.apply(t, key("small"), fmt.Sprintf(`{"users":[{"name":"alice","tokenGeneration":%d}]}`, generation))
		took = append(took, waitFor(t, "token revoked", func() bool { return l.answers(t, old, http.StatusUnauthorized) }))
		waitFor(t, "new token", func() bool { return l.token(t, key("small"), "alice") != old })
	}
	slices.Sort(took)
	t.Logf("revocation: p50 %v, p95 %v, max %v", took[len(took)/2], took[len(took)*95/100-1], took[len(took)-1])
	if p95 := took[len(took)*95/100-1]; p95 > maxRevocation {
		t.Errorf("the 95th percentile of a revocation is %v, want at most %v", p95, maxRevocation)
	}
}

// firstRotated returns the rotation of the first user's Secret.
func (l *live) firstRotated(t *testing.T, key types.NamespacedName) string {
	t.Helper()
	secret := secretNamed(key.Namespace, key.Name+"-user0-access")
	if err := l.Get(t.Context(), types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}, secret); err != nil {
		t.Fatal(err)
	}
	return secret.Annotations[v1alpha1.AnnotationRotated]
}

// maxUsageDelay is generous for a busy machine, and far below the resync interval.
const maxUsageDelay = time.Minute

// TestUsageIsReportedSoon: the status shows the usage soon after a write and after a
// quota change, which blocks conversations in a job. With -v it prints the delays.
func TestUsageIsReportedSoon(t *testing.T) { //nolint:paralleltest // the operator's metrics are the process's
	l := newLive(t, 1)
	l.operate(controllers.Config{})
	key := types.NamespacedName{Namespace: l.namespaces[0], Name: "acme"}
	l.apply(t, key, `{"users":[{"name":"alice"}],"quota":{`+unlimitedRate+`}}`)
	waitFor(t, "token", func() bool {
		return l.token(t, key, "alice") != "" && l.answers(t, l.token(t, key, "alice"), http.StatusOK)
	})
	token := l.token(t, key, "alice")
	shows := func(what string, holds func(*v1alpha1.TenantUsage) bool) {
		t.Helper()
		took := waitFor(t, what, func() bool {
			usage := (&env{Client: l.Client, ns: key.Namespace}).tenant(t).Status.Usage
			return usage != nil && holds(usage)
		})
		t.Logf("%6d ms  %s", took.Milliseconds(), what)
		if took > maxUsageDelay {
			t.Errorf("%s: shown after %v, want at most %v", what, took, maxUsageDelay)
		}
	}
	for day := range 3 {
		l.storeConversation(t, token, fmt.Sprint("talk-", day), day+1)
	}
	shows("three conversations stored", func(u *v1alpha1.TenantUsage) bool { return u.Conversations.Used == 3 })
	l.apply(t, key, `{"quota":{"conversations":1}}`)
	shows("quota lowered: two are blocked", func(u *v1alpha1.TenantUsage) bool {
		return u.Conversations.Used == 1 && u.Conversations.Hard == 1 && u.Blocked == 2
	})
	l.apply(t, key, `{"quota":{"conversations":10}}`)
	shows("quota raised: all are active", func(u *v1alpha1.TenantUsage) bool {
		return u.Conversations.Used == 3 && u.Conversations.Hard == 10 && u.Blocked == 0
	})
	if status := l.remember(t, 0, token, "The stove is from 1962."); status != http.StatusOK {
		t.Fatalf("store memory: %d", status)
	}
	shows("another write within the interval", func(u *v1alpha1.TenantUsage) bool { return u.Memories.Used == 1 })
}
