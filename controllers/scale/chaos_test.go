package scale_test

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
	"github.com/mnemo-dev/mnemo/internal/testkit/installation"
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
	i := installation.New(t, installation.Options{})
	i.Serve(t) // it works on the jobs
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
				change(t, i, r)
				changes++
			}
		}
	})
	r := rand.New(rand.NewPCG(chaosSeed, 2))
	for range kills {
		o := i.Operate(t)
		select {
		case <-time.After(time.Duration(100+r.IntN(2400)) * time.Millisecond):
		case <-o.Ended:
			t.Errorf("the operator ended by itself:\n%s", o.Log())
		}
		o.Kill()
	}
	close(stop)
	wait.Wait()
	i.Operate(t)
	installation.Eventually(t, installation.Patience, func() string { return problems(t, i) })
	var left v1alpha1.TenantList
	if err := i.List(t.Context(), &left, client.InNamespace(i.Namespace)); err != nil || len(left.Items) == 0 {
		t.Errorf("%d Tenants are left (%v): the end shows nothing", len(left.Items), err)
	}
	t.Logf("%d changes, %d Tenants in the end", changes, len(left.Items))
	seesOrphans(t, i)
}

// change makes, changes or deletes a Tenant. Who is refused, because of the
// operator's own writes or a deletion under way, has changed nothing.
func change(t *testing.T, i *installation.Installation, r *rand.Rand) {
	t.Helper()
	tn := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: i.Namespace, Name: fmt.Sprint("t", r.IntN(chaosNames))}}
	if i.Get(t.Context(), client.ObjectKeyFromObject(tn), tn) != nil {
		tn.Spec.DeletionPolicy = v1alpha1.Delete
		vary(tn, r)
		_ = i.Create(t.Context(), tn)
		return
	}
	if r.IntN(4) == 0 {
		_ = i.Delete(t.Context(), tn)
		return
	}
	vary(tn, r)
	_ = i.Update(t.Context(), tn)
}

func vary(tn *v1alpha1.Tenant, r *rand.Rand) {
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
