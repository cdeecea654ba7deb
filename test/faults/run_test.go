package faults_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/client"
	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/test/installation"
)

var (
	duration = flag.Duration("duration", 0, "duration of the run; 0 for a few short rounds without slow faults")
	seed     = flag.Uint64("seed", 1, "seed of the load and of the first plan of faults")
	users    = flag.Int("users", 0, "users of each tenant that are active at a time; 0 for the default")
)

const (
	// A run consists of rounds: load with the faults of a seed, then a comparison.
	shortRound, shortRounds = 8 * time.Second, 3
	longRound               = 3 * time.Minute
	// convergence is the documented time after the last fault within which all jobs
	// have ended and both stores are equal (docs/reliability.md). A clock that was wrong
	// delays it by its offset.
	convergence = 5*time.Minute + 90*time.Second
)

// TestFaults runs users and faults on the whole platform, and then checks that nothing
// acknowledged is missing, nothing deleted is left, and nothing is anybody else's.
func TestFaults(t *testing.T) {
	short, lasting := *duration == 0, *duration
	s := newStack(t, true, installation.Options{})
	h := newHistory()
	t.Logf("seed %d; the disk of PostgreSQL can be filled: %t", *seed, s.disk != nil)
	r := newRun(t, s, h, *seed, "roomy", "shared", "tight")
	var longest time.Duration
	for n := uint64(0); h.now() < lasting || short && n < shortRounds; n++ {
		took := r.round(t.Context(), *seed+n, short)
		longest = max(longest, took)
		t.Logf("seed %d: %s; converged after %s", *seed+n, h.totals(), took.Round(100*time.Millisecond))
		if out := h.report(); out != "" {
			t.Fatalf("seed %d:\n%s\n%s", *seed+n, out, h.table())
		}
	}
	t.Logf("seed %d: longest convergence %s\n%s", *seed, longest.Round(100*time.Millisecond), h.table())
}

// round runs the load and the faults of a seed, and then compares everything. It returns
// how long the convergence took.
func (r *running) round(ctx context.Context, seed uint64, short bool) time.Duration {
	lasting := longRound
	if short {
		lasting = shortRound
	}
	r.start(ctx, time.Second)
	n := &injector{stack: r.stack, history: r.history, begun: time.Now()}
	n.run(plan(seed, lasting, short))
	r.stop()
	if short {
		r.hurry(ctx)
	}
	took := r.converge(ctx, convergence)
	r.check(ctx)
	return took
}

// running is a stack with load.
type running struct {
	checker
	lanes  []*lane
	random *rand.Rand
	cancel context.CancelFunc
	wait   sync.WaitGroup
	users  int // accounts so far
	mu     sync.Mutex
}

// newRun creates the named tenants and their users.
func newRun(t *testing.T, s *stack, h *history, seed uint64, names ...string) *running {
	t.Helper()
	r := &running{checker: checker{stack: s, history: h, accounts: map[string]*account{}}, random: rand.New(rand.NewPCG(seed, 10))}
	active := max(*users, 3)
	for _, name := range names {
		var users []string
		for i := range 2 * active {
			users = append(users, fmt.Sprint("u", i))
		}
		tn := s.Tenant(name, users...)
		// An hour of load must not reach the quotas of any tenant but the tight one: searches
		// do not find conversations over the quota.
		tn.Spec.Quota.RequestsPerMinute = new(int64(1_000_000))
		tn.Spec.Quota.Memories, tn.Spec.Quota.Conversations = new(int64(100_000)), new(int64(100_000))
		tn.Spec.Quota.Storage = new(resource.MustParse("10Gi"))
		tn.Spec.Quota.Users = new(int64(1000))
		tn.Spec.Applications = []v1alpha1.TenantApplication{{Name: application, Scopes: []v1alpha1.ApplicationScope{"read", "write", "admin"}}}
		tenants[name](tn)
		s.MustCreate(t, tn)
	}
	for _, name := range names {
		s.awaitTenant(t.Context(), name)
		var all []*account
		for i := range 2 * active {
			all = append(all, r.account(t, name, fmt.Sprint("u", i), s.Token(t, name, fmt.Sprint("u", i))))
		}
		for i := range active {
			r.lanes = append(r.lanes, r.lane(all[i], all[active+i]))
		}
		if name != "tight" { // its quotas would apply to restores
			r.applicationUsers(t, name)
		}
	}
	return r
}

// tenants are the tenants of runs.
var tenants = map[string]func(*v1alpha1.Tenant){
	"roomy":  func(*v1alpha1.Tenant) {},
	"shared": func(t *v1alpha1.Tenant) { t.Spec.Isolation = v1alpha1.Shared },
	"other":  func(*v1alpha1.Tenant) {},
	"tight": func(t *v1alpha1.Tenant) {
		t.Spec.Quota.Memories, t.Spec.Quota.Conversations = new(int64(40)), new(int64(8))
		t.Spec.Quota.Storage = new(resource.MustParse("32Ki"))
		t.Spec.Quota.PerUser = &v1alpha1.UserQuota{Memories: new(int64(12)), Conversations: new(int64(4))}
	},
}

// account returns an account with its clients.
func (r *running) account(t testing.TB, tenant, name, token string, options ...client.ClientOption) *account {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.users++
	a := &account{
		model: newModel(), tenant: tenant, name: name, number: 100 + r.users, tight: tenant == "tight",
		owner: fmt.Sprint("owner", 100+r.users), http: &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()},
	}
	a.apis = r.clients(t, token, append(options, client.WithHTTPClient(a.http))...)
	t.Cleanup(a.http.CloseIdleConnections)
	r.accounts[a.String()] = a
	return a
}

// clients returns a client of each server.
func (s *stack) clients(t testing.TB, token string, options ...client.ClientOption) (out []*client.Client) {
	t.Helper()
	for i := range servers {
		c, err := client.New(s.url(i), token, options...)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

// application is the application of each tenant, and applicationLanes the number of its users that are active at a time.
const (
	application      = "backend"
	applicationLanes = 2
)

// applicationUsers adds users of the tenant's application, whose first write creates them.
func (r *running) applicationUsers(t testing.TB, name string) {
	t.Helper()
	key := r.secret(t, name+"-"+application+"-key")
	for range applicationLanes {
		var all []*account
		for range 50 {
			user := fmt.Sprint("user ", r.users)
			a := r.account(t, name, tenant.StoredUser(user), key, client.WithRequestEditorFn(func(_ context.Context, q *http.Request) error {
				q.Header.Set("X-Mnemo-User", user)
				return nil
			}))
			a.user, a.keys = user, r.clients(t, key, client.WithHTTPClient(a.http))
			all = append(all, a)
		}
		r.lanes = append(r.lanes, r.lane(all[0], all[1:]...))
	}
}

// secret returns the token in a Secret.
func (s *stack) secret(t testing.TB, name string) string {
	t.Helper()
	secret := &corev1.Secret{}
	if err := s.Get(t.Context(), kube.ObjectKey{Namespace: s.Namespace, Name: name}, secret); err != nil {
		t.Fatal(err)
	}
	return string(secret.Data[v1alpha1.SecretToken])
}

func (r *running) lane(a *account, spare ...*account) *lane {
	l := &lane{history: r.history, account: a, spare: spare, rand: rand.New(rand.NewPCG(r.random.Uint64(), 1))}
	l.steps = l.all()
	return l
}

// start starts the load and, at an interval, the checks of quotas and counters.
func (r *running) start(ctx context.Context, every time.Duration) {
	ctx, r.cancel = context.WithCancel(ctx)
	for _, l := range r.lanes {
		r.wait.Go(func() { l.run(ctx) })
	}
	r.wait.Go(func() { r.sample(ctx, every/4) })
	if r.own {
		r.wait.Go(func() { r.briefTenants(ctx) })
	}
}

// stop ends the load. Requests end first.
func (r *running) stop() {
	r.cancel()
	r.wait.Wait()
}

// hurry shortens the waits for jobs and imports of a server that was killed, three
// minutes and 20 seconds, and between the attempts of jobs.
func (r *running) hurry(ctx context.Context) {
	for _, sql := range []string{
		"update river_job set attempted_at = attempted_at - interval '5 minutes' where state = 'running'",
		"update imports set leased_until = now() where status = 'running'",
		"update river_job set scheduled_at = now() where state in ('scheduled', 'retryable') and kind <> 'placement.drop'",
	} {
		if _, err := r.Owner.Exec(ctx, sql); err != nil {
			r.t.Error(err)
		}
	}
}

// briefTenants creates, uses and deletes tenants, one after the other.
func (r *running) briefTenants(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		name := fmt.Sprint("brief", n)
		tn := r.Tenant(name, "u")
		tn.Spec.DeletionPolicy = v1alpha1.Delete
		tn.Spec.Quota.RequestsPerMinute = new(int64(1_000_000))
		if err := r.Create(ctx, tn); err != nil {
			continue
		}
		if !r.poll(ctx, func() bool { return r.isReady(ctx, name) }) {
			return
		}
		l := r.lane(r.account(r.t, name, "u", r.Token(r.t, name, "u")))
		use, cancel := context.WithTimeout(ctx, 3*time.Second)
		l.run(use)
		cancel()
		if ctx.Err() != nil {
			return
		}
		begun := r.now()
		// The end of the load must not interrupt the request, whose outcome would be unknown.
		if err := r.Delete(context.WithoutCancel(ctx), tn); err != nil {
			r.t.Errorf("delete Tenant %s: %v", name, err)
			return
		}
		r.mu.Lock()
		delete(r.accounts, l.String())
		r.mu.Unlock()
		gone := r.poll(ctx, func() bool { return apierrors.IsNotFound(r.Get(ctx, kube.ObjectKeyFromObject(tn), tn)) })
		o := op{Begun: begun, User: name, Kind: "delete tenant", Outcome: unknown}
		if gone {
			o.Outcome = acknowledged
		}
		r.add(o)
	}
}

// poll waits until a condition holds, and reports whether it does.
func (r *running) poll(ctx context.Context, done func() bool) bool {
	for !done() {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(100 * time.Millisecond):
		}
	}
	return true
}
