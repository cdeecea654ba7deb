package scale_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/testkit"
	"github.com/mnemo-dev/mnemo/test/installation"
)

// TestManyTenants applies Tenants of two users, all there when the operator
// starts, and waits until all are ready: it takes little more than the calls
// that takes, and little memory. Then nothing happens, and nothing is written.
func TestManyTenants(t *testing.T) {
	t.Parallel()
	i := installation.New(t, installation.Options{})
	apply(t, i, 0, *tenants)
	var r *raw
	var calls time.Duration
	if *ratio > 0 {
		// Half before and half after, so that both are affected if the machine slows
		// down.
		r = newRaw(t)
		apply(t, r.Installation, 0, *tenants)
		calls = r.run(t, 0, *tenants/2)
	}
	started := time.Now()
	o := i.Operate(t, "MNEMO_LEADER_ELECT=true", "MNEMO_RESYNC="+(*idle/4).String())
	installation.Eventually(t, *patience, func() string {
		// Each scrape makes the operator list all Tenants.
		if wait(t, 500*time.Millisecond); int(o.Count("mnemo_tenants", `"ready"`)) < *tenants {
			return "not all Tenants are ready"
		}
		return ""
	})
	took := time.Since(started)
	used := o.Used(t)
	t.Logf("%d Tenants of two users are ready after %v, %v each; CPU %v, peak %d MiB, %.0f reconciliations", *tenants,
		took.Round(time.Millisecond), (took / time.Duration(*tenants)).Round(10*time.Microsecond), used.CPU, used.Peak>>20,
		o.Count("controller_runtime_reconcile_total", ""))
	if *ratio > 0 {
		calls += r.run(t, *tenants/2, *tenants)
		all, least, shares := r.all(calls)
		t.Logf("the calls alone: %v, %v each (%s): ratio %.2f; without those on the Tenant itself %v: ratio %.2f",
			all.Round(time.Millisecond), (all / time.Duration(*tenants)).Round(10*time.Microsecond), shares, float64(took)/float64(all),
			least.Round(time.Millisecond), float64(took)/float64(least))
		if got := float64(took) / float64(least); got > *ratio {
			t.Errorf("the operator took %.2f times as long as the bare calls for Secrets, rows and partitions, want at most %.2f", got, *ratio)
		}
	}
	isIdle(t, i, o)
	isWhole(t, i)
	if used = o.Used(t); used.Peak > mostMemory {
		t.Errorf("the operator used %d MiB, want at most %d", used.Peak>>20, mostMemory>>20)
	}
}

// apply creates the Tenants with numbers in [from, to), eight at a time.
func apply(tb testing.TB, i *installation.Installation, from, to int) {
	tb.Helper()
	var wait sync.WaitGroup
	for worker := range 8 {
		wait.Go(func() {
			for k := from + worker; k < to; k += 8 {
				if err := i.Create(tb.Context(), i.Tenant(fmt.Sprint("t", k), "alice", "bob")); err != nil {
					tb.Error(err)
				}
			}
		})
	}
	wait.Wait()
}

func isReady(t *v1alpha1.Tenant) bool {
	return meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.Ready)
}

// isWhole compares the Tenants with their Secrets, PostgreSQL and Milvus.
func isWhole(t *testing.T, i *installation.Installation) {
	t.Helper()
	var list v1alpha1.TenantList
	var secrets corev1.SecretList
	if err := i.List(t.Context(), &list, client.InNamespace(i.Namespace)); err != nil {
		t.Fatal(err)
	}
	if err := i.List(t.Context(), &secrets, client.InNamespace(i.Namespace)); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != *tenants {
		t.Fatalf("len(list.Items) = %d, want %d", len(list.Items), *tenants)
	}
	if len(secrets.Items) != 2**tenants {
		t.Fatalf("len(secrets.Items) = %d, want %d", len(secrets.Items), 2**tenants)
	}
	if found := problems(t, i); found != "" {
		t.Error(found)
	}
}

// writes is the state of all stores, which any write changes.
type writes struct {
	Rows    string // a hash of the versions of all rows, by table
	Written int64  // PostgreSQL's count of writes, up to ten seconds old
	Kube    int64  // the operator's write requests to Kubernetes, except for leases
	Objects string // the resourceVersion of every Tenant and Secret
	AllKube string // all write requests to Kubernetes, except for leases; only with -alone
}

func isIdle(t *testing.T, i *installation.Installation, o *installation.Process) {
	t.Helper()
	// PostgreSQL updates its counters within ten seconds.
	var before writes
	installation.Eventually(t, installation.Patience, func() string {
		was := before
		before = count(t, i, o)
		if wait(t, 12*time.Second); was != before {
			return "the operator still writes: " + cmp.Diff(was, before)
		}
		return ""
	})
	cpu, reconciled, began := o.Used(t).CPU, o.Count("controller_runtime_reconcile_total", ""), time.Now()
	wait(t, *idle)
	var looked float64
	installation.Eventually(t, installation.Patience, func() string { // a slow machine takes longer
		if looked = o.Count("controller_runtime_reconcile_total", "") - reconciled; int(looked) < 3**tenants {
			return fmt.Sprintf("%.0f resyncs of %d Tenants, want three of each", looked, *tenants)
		}
		return ""
	})
	after := count(t, i, o)
	t.Logf("idle for %v: %.0f resyncs, CPU %v; %d rows written, %d write requests to Kubernetes", time.Since(began).Round(time.Second), looked,
		o.Used(t).CPU-cpu, after.Written-before.Written, after.Kube-before.Kube)
	if before != after {
		t.Errorf("the idle operator wrote (-before +after):\n%s", cmp.Diff(before, after))
	}
}

func count(t *testing.T, i *installation.Installation, o *installation.Process) writes {
	t.Helper()
	var w writes
	if err := i.Owner.QueryRow(t.Context(), "select coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::bigint from pg_stat_user_tables").Scan(&w.Written); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"tenants", "quotas", "usage", "users", "tokens", "placements", "placement_migrations", "river_job"} {
		var rows string
		if err := i.Owner.QueryRow(t.Context(), "select count(*) || '/' || coalesce(sum(hashtext(xmin || ' ' || ctid)::bigint), 0) from "+table).Scan(&rows); err != nil {
			t.Fatal(err)
		}
		w.Rows += " " + table + " " + rows
	}
	for _, method := range []string{"POST", "PATCH", "DELETE"} { // leases are PUT; so are Secrets, which Objects covers
		w.Kube += int64(o.Count("rest_client_requests_total", `method="`+method+`"`))
	}
	w.Objects = versions(t, i)
	if *alone {
		w.AllKube = kubeWrites(t)
	}
	return w
}

// versions returns the resourceVersions of all Tenants and Secrets of the installation.
func versions(t *testing.T, i *installation.Installation) string {
	t.Helper()
	var tenants v1alpha1.TenantList
	var secrets corev1.SecretList
	if err := errors.Join(i.List(t.Context(), &tenants, client.InNamespace(i.Namespace)),
		i.List(t.Context(), &secrets, client.InNamespace(i.Namespace))); err != nil {
		t.Fatal(err)
	}
	var out []string
	for k := range tenants.Items {
		out = append(out, "Tenant "+tenants.Items[k].Name+" "+tenants.Items[k].ResourceVersion)
	}
	for k := range secrets.Items {
		out = append(out, "Secret "+secrets.Items[k].Name+" "+secrets.Items[k].ResourceVersion)
	}
	return strings.Join(out, "\n") // lists are sorted by name
}

// kubeWrites returns the API server's metrics of write requests, except for leases.
func kubeWrites(t *testing.T) string {
	t.Helper()
	transport, err := rest.HTTPClientFor(testkit.KubeConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	res, err := transport.Get(testkit.KubeConfig(t).Host + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(raw)) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		if !strings.HasPrefix(series, "apiserver_request_total{") || strings.Contains(series, `resource="leases"`) {
			continue
		}
		for _, verb := range []string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"} {
			if strings.Contains(series, `verb="`+verb+`"`) {
				out = append(out, series+"} "+value)
			}
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// wait waits while nothing is expected to happen.
func wait(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	<-ctx.Done()
}
