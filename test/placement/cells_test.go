package placement_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	devmilvus "github.com/mnemo-dev/mnemo/hack/devenv/milvus"
	"github.com/mnemo-dev/mnemo/internal/milvus/milvustest"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/testkit"
	"github.com/mnemo-dev/mnemo/test/installation"
)

const (
	// loadRate is the number of requests per second during a move, and maxGap the longest time in which
	// no request of a kind may succeed. It is far longer than a move needs, which the test logs: on a busy machine,
	// other tests delay requests by seconds.
	loadRate = 20
	maxGap   = time.Minute
)

// cellHost is a host with a second Milvus as a cell.
type cellHost struct {
	*host
	env    []string
	cell   string
	second *devmilvus.Server
}

// newCellHost starts the second Milvus and adds the cell.
func newCellHost(t *testing.T) *cellHost {
	t.Helper()
	h := &cellHost{host: &host{Installation: installation.New(t, installation.Options{})}}
	h.second, _ = startMilvus(t)
	h.cell = h.Namespace
	dir := t.TempDir()
	h.env = []string{"MNEMO_CELLS_DIR=" + dir}
	h.Operate(t, append(h.env, "MNEMO_CELLS_SECRET="+h.Namespace+"/mnemo-cells", "MNEMO_CELLS_SELECTOR=installation="+h.Namespace)...)
	h.server = h.Serve(t, h.env...)
	h.mount(t, dir)
	h.MustCreate(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "second"},
		StringData: map[string]string{"username": h.second.User, "password": h.second.Password}})
	cell := &v1alpha1.Cell{ObjectMeta: metav1.ObjectMeta{Name: h.cell, Labels: map[string]string{"installation": h.Namespace}}, Spec: v1alpha1.CellSpec{
		Milvus: v1alpha1.CellMilvus{Address: h.second.Addr, SecretRef: &v1alpha1.CellSecretRef{Name: "second"}}, Region: "eu",
	}}
	h.MustCreate(t, cell)
	t.Cleanup(func() { h.removeCell(t, cell) })
	installation.Eventually(t, installation.Patience, func() string {
		if err := h.Get(t.Context(), client.ObjectKeyFromObject(cell), cell); err != nil {
			return err.Error()
		}
		if len(cell.Status.Conditions) == 0 || cell.Status.Conditions[0].Reason != v1alpha1.ReasonConnected {
			return fmt.Sprintf("the cell is not ready: %+v", cell.Status)
		}
		return ""
	})
	return h
}

// removeCell deletes the Cell, which may be in use.
func (h *cellHost) removeCell(t *testing.T, cell *v1alpha1.Cell) {
	t.Helper()
	ctx := context.Background() // that of the test has ended
	installation.Eventually(t, installation.Patience, func() string {
		if err := h.Get(ctx, client.ObjectKeyFromObject(cell), cell); client.IgnoreNotFound(err) == nil && err != nil {
			return ""
		}
		cell.Finalizers = nil
		_ = h.Update(ctx, cell)
		_ = h.Delete(ctx, cell)
		return "the Cell still exists"
	})
}

// mount copies the Secret with the connections to a directory, as the kubelet does.
func (h *cellHost) mount(t *testing.T, dir string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() {
		stop()
		<-done
	})
	go func() {
		defer close(done)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			secret := &corev1.Secret{}
			if err := h.Get(ctx, client.ObjectKey{Namespace: h.Namespace, Name: "mnemo-cells"}, secret); err != nil {
				continue
			}
			for name, data := range secret.Data {
				temporary := filepath.Join(dir, "."+name)
				if os.WriteFile(temporary, data, 0o600) == nil {
					_ = os.Rename(temporary, filepath.Join(dir, name))
				}
			}
		}
	}()
}

// requestCell requests a cell for the tenant, or the default one.
func (u *user) requestCell(t *testing.T, cell string) {
	t.Helper()
	request := "null"
	if cell != "" {
		request = fmt.Sprintf(`{"cell":%q}`, cell)
	}
	u.host.MustPatch(t, u.tenant, `{"spec":{"placement":`+request+`}}`)
}

// arrive waits until the tenant is in a cell.
func (u *user) arrive(t *testing.T, cell string) {
	t.Helper()
	installation.Eventually(t, installation.Patience, func() string {
		if at := u.location(t); at.Cell != cell || !at.Indexed() || u.migration(t).Running {
			return fmt.Sprintf("the tenant is at %+v", at)
		}
		return ""
	})
}

// load sends requests at a fixed rate and measures how long none of a kind succeeds.
type load struct {
	mu        sync.Mutex
	succeeded map[string]time.Time // the latest start of a request that succeeded
	gaps      map[string]time.Duration
	requests  int
	failures  []error
	degraded  int
}

// done records the result of a request.
func (l *load) done(kind string, started time.Time, degraded bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests++
	if degraded {
		l.degraded++
	}
	if err != nil {
		l.failures = append(l.failures, fmt.Errorf("%s: %w", kind, err))
		l.gaps[kind] = max(l.gaps[kind], time.Since(l.succeeded[kind]))
		return
	}
	if started.After(l.succeeded[kind]) {
		l.succeeded[kind] = started
	}
}

// underLoad calls change while the user searches and stores messages, three to one, and reports what
// the requests observed.
func (u *user) underLoad(t *testing.T, change func()) *load {
	t.Helper()
	now := time.Now()
	l := &load{succeeded: map[string]time.Time{"search": now, "store": now}, gaps: map[string]time.Duration{}}
	stop, stored := make(chan struct{}), u.messages
	var wait, running sync.WaitGroup
	wait.Go(func() {
		tick := time.NewTicker(time.Second / loadRate)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			if n%4 == 3 {
				number := stored
				stored++
				running.Go(func() {
					started := time.Now()
					l.done("store", started, false, u.tell(number))
				})
				continue
			}
			running.Go(func() {
				started := time.Now()
				_, degraded, err := u.find((n * 37) % u.messages)
				l.done("search", started, degraded, err)
			})
		}
	})
	change()
	close(stop)
	wait.Wait()
	running.Wait()
	u.messages = stored
	return l
}

// tell stores a conversation about one number.
func (u *user) tell(n int) error {
	_, answer, err := u.post("/api/chat-history/ingest/custom-online", fmt.Appendf(nil,
		`{"platform":"custom","conversation":{"id":"from-%d","title":"Yard","createdAt":"2026-05-01T00:00:00Z",
		"messages":[{"id":"%d","role":"user","content":%q,"createdAt":"2026-05-01T00:00:00Z"}]}}`, n, n, u.text(n)))
	if err != nil {
		return fmt.Errorf("%w: %s", err, answer)
	}
	return nil
}

// wantExactly checks that a Milvus contains each unit of the tenant exactly once.
func (u *user) wantExactly(t *testing.T, in testkit.MilvusAddr, at placement.Location) {
	t.Helper()
	live, err := u.host.DB.Live(t.Context(), tenant.ID(u.id(t)), 0, 10*placement.ExactUnits)
	if err != nil {
		t.Fatal(err)
	}
	if len(live) < u.messages {
		t.Errorf("PostgreSQL has %d units of %d messages", len(live), u.messages)
	}
	c, err := milvustest.Connect(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	ids, err := milvustest.IDs(t.Context(), c, at)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ids)
	unique := len(slices.Compact(slices.Clone(ids)))
	lost := 0
	for _, id := range live {
		if _, found := slices.BinarySearch(ids, int64(id)); !found {
			lost++
		}
	}
	t.Logf("%d units, %d vectors in cell %q, %d lost, %d duplicated, %d of no unit", len(live), len(ids), at.Cell, lost, len(ids)-unique, unique-len(live)+lost)
	if lost > 0 || len(ids) != len(live) {
		t.Errorf("%d of %d units are lost, %d vectors are duplicated", lost, len(live), len(ids)-unique)
	}
}

// TestMoveBetweenCells moves a tenant to another Milvus instance while it searches and stores messages,
// then again while the server is killed, and back after that instance failed.
func TestMoveBetweenCells(t *testing.T) {
	t.Parallel()
	h := newCellHost(t)
	first, second := h.Milvus, testkit.MilvusAddr{Addr: h.second.Addr, User: h.second.User, Password: h.second.Password}
	migrating, neighbor := h.add(t, "migrated", v1alpha1.Partition, 2*placement.ExactUnits), h.add(t, "neighbor", v1alpha1.Partition, placement.ExactUnits+100)
	migrating.mustFind(t)
	left := migrating.location(t)

	l := migrating.underLoad(t, func() {
		migrating.requestCell(t, h.cell)
		migrating.arrive(t, h.cell)
	})
	migrating.settle(t)
	t.Logf("%d requests, %d of them degraded, %d failed, longest without a success: %v", l.requests, l.degraded, len(l.failures), l.gaps)
	if l.requests < loadRate {
		t.Errorf("%d requests during the move, want at least those of a second", l.requests)
	}
	for kind, gap := range l.gaps {
		if gap > maxGap {
			t.Errorf("no request of kind %s succeeded for %v: %v", kind, gap, l.failures[0])
		}
	}
	migrating.wantExactly(t, second, migrating.location(t))
	migrating.mustFind(t)
	h.wantDropped(t, first, left)

	h.failSecond(t, migrating, neighbor)
}

// wantDropped runs the jobs that drop a location, and checks that it is gone.
func (h *cellHost) wantDropped(t *testing.T, in testkit.MilvusAddr, at placement.Location) {
	t.Helper()
	if _, err := h.Owner.Exec(t.Context(), "update river_job set scheduled_at = now(), state = 'available' where kind = 'placement.drop' and state = 'scheduled'"); err != nil {
		t.Fatal(err)
	}
	c, err := milvustest.Connect(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	installation.Eventually(t, installation.Patience, func() string {
		found, err := milvustest.Locations(t.Context(), c, h.Prefix())
		if err != nil {
			return err.Error()
		}
		at.Cell = ""
		if slices.Contains(found, at) {
			return "the partition was not dropped"
		}
		return ""
	})
}

// failSecond stops the second Milvus instance: only its tenant is degraded, which is then migrated to
// the default cell. The server is killed meanwhile.
func (h *cellHost) failSecond(t *testing.T, migrating, neighbor *user) {
	t.Helper()
	if err := h.second.Kill(); err != nil {
		t.Fatal(err)
	}
	for range 20 { // jobs that wait for the cell
		if err := migrating.tell(migrating.messages); err != nil {
			t.Fatal(err)
		}
		migrating.messages++
	}
	if _, degraded, err := migrating.find(1); err != nil || !degraded {
		t.Errorf("a search of the tenant in the cell: degraded %t, %v, want a degraded response", degraded, err)
	}
	neighbor.say(t, neighbor.messages, neighbor.messages+20)
	neighbor.messages += 20
	neighbor.settle(t)
	neighbor.mustFind(t)

	migrating.requestCell(t, "")
	installation.Eventually(t, installation.Patience, func() string {
		if m := migrating.migration(t); m.Cursor == 0 && migrating.location(t).Cell != "" {
			return fmt.Sprintf("the move is at %+v", m)
		}
		return ""
	})
	h.killServer(t)
	h.server = h.Serve(t, h.env...)
	migrating.arrive(t, "")
	migrating.settle(t)
	migrating.wantExactly(t, h.Milvus, migrating.location(t))
	migrating.mustFind(t)
}
