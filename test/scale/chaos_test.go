package scale_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/test/installation"
)

const (
	chaosSeed  = 20261121
	chaosKills = 8 // MNEMO_CHAOS_KILLS for more
	chaosNames = 12
)

// TestKilledAtAnyMoment kills the operator at random moments while Tenants are
// created, used, updated and deleted. In the end Kubernetes, PostgreSQL and Milvus
// match the Tenants exactly.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	kills := chaosKills
	if n, err := strconv.Atoi(os.Getenv("MNEMO_CHAOS_KILLS")); err == nil {
		kills = n
	}
	t.Logf("seed %d, %d kills", chaosSeed, kills)
	i := installation.New(t, installation.Options{})
	server := i.Serve(t) // runs the jobs
	stop := make(chan struct{})
	var wait sync.WaitGroup
	changes := 0
	var stored atomic.Int64
	wait.Go(func() {
		r := rand.New(rand.NewPCG(chaosSeed, 1))
		for pause := time.NewTicker(40 * time.Millisecond); ; {
			select {
			case <-stop:
				return
			case <-pause.C:
				stored.Add(change(t, i, server.URL, r))
				changes++
			}
		}
	})
	r := rand.New(rand.NewPCG(chaosSeed, 2))
	for n := range kills {
		o := i.Operate(t)
		if n == 0 { // ensures that there is data, however slow the machine is
			installation.Eventually(t, installation.Patience, func() string {
				if n := stored.Load(); n < 20 {
					return fmt.Sprintf("%d memories are stored, want 20", n)
				}
				return ""
			})
		}
		select {
		case <-time.After(time.Duration(100+r.IntN(2400)) * time.Millisecond):
		case <-o.Ended:
			t.Errorf("the operator exited:\n%s", o.Log())
		}
		o.Kill()
	}
	close(stop)
	wait.Wait()
	i.Operate(t)
	installation.Eventually(t, installation.Patience, func() string { return cmp.Or(problems(t, i), strayUnits(t, i)) })
	var left v1alpha1.TenantList
	if err := i.List(t.Context(), &left, client.InNamespace(i.Namespace)); err != nil || len(left.Items) == 0 {
		t.Errorf("%d Tenants remain (error %v), want at least one", len(left.Items), err)
	}
	var held int
	if err := i.Owner.QueryRow(t.Context(), "select count(*) from memories").Scan(&held); err != nil {
		t.Error(err)
	}
	t.Logf("%d changes, %d memories stored; in the end %d Tenants with %d memories", changes, stored.Load(), len(left.Items), held)
	seesOrphans(t, i)
}

// change creates, uses, updates or deletes a Tenant and returns how many memories it
// stored. Requests that are refused because of concurrent writes of the operator or
// a deletion in progress change nothing.
func change(t *testing.T, i *installation.Installation, url string, r *rand.Rand) (stored int64) {
	t.Helper()
	tn := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: i.Namespace, Name: fmt.Sprint("t", r.IntN(chaosNames))}}
	if i.Get(t.Context(), client.ObjectKeyFromObject(tn), tn) != nil {
		tn.Spec.DeletionPolicy = v1alpha1.Delete
		vary(tn, r)
		_ = i.Create(t.Context(), tn)
		return 0
	}
	if isReady(tn) && len(tn.Spec.Users) > 0 && r.IntN(3) == 0 {
		return use(t, i, url, tn.Name, tn.Spec.Users[r.IntN(len(tn.Spec.Users))].Name, r)
	}
	if r.IntN(4) == 0 {
		_ = i.Delete(t.Context(), tn)
		return 0
	}
	vary(tn, r)
	_ = i.Update(t.Context(), tn)
	return 0
}

// use stores two memories as a user.
func use(t *testing.T, i *installation.Installation, url, tenant, user string, r *rand.Rand) (stored int64) {
	t.Helper()
	secret := &corev1.Secret{}
	_ = i.Get(t.Context(), client.ObjectKey{Namespace: i.Namespace, Name: tenant + "-" + user + "-access"}, secret)
	for range 2 {
		body := fmt.Sprintf(`{"text":"The blue%d door is open."}`, r.IntN(1000))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/memory", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return stored
		}
		req.Header.Set("Authorization", "Bearer "+string(secret.Data[v1alpha1.SecretToken]))
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			return stored
		}
		_ = res.Body.Close()
		if res.StatusCode == http.StatusOK {
			stored++
		}
	}
	return stored
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
