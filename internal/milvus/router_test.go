package milvus_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/milvus"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// home records the upserts of the default cell.
type home struct {
	milvus.Backend
	upserts int
}

func (h *home) Upsert(context.Context, tenant.ID, placement.Location, []indexing.Entry) error {
	h.upserts++
	return nil
}

func (h *home) Close() error { return nil }

// newRouter returns a Router with cells that are files of a directory.
func newRouter(t *testing.T, cells map[string]placement.Connection) (r *milvus.Router, h *home, dir string) {
	t.Helper()
	h, dir = &home{}, t.TempDir()
	r = milvus.NewRouter(h, dimensions, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = r.Close() })
	for name, c := range cells {
		writeCell(t, dir, name, c)
	}
	if err := r.Load(dir); err != nil {
		t.Fatal(err)
	}
	return r, h, dir
}

func writeCell(t *testing.T, dir, name string, c placement.Connection) {
	t.Helper()
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".json"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

func upsertTo(t *testing.T, r *milvus.Router, cell string) error {
	t.Helper()
	return r.Upsert(t.Context(), "one", placement.Location{Cell: cell, Collection: "c", Partition: "p"}, []indexing.Entry{entry(1, 1, 1)})
}

// A cell that does not respond fails its own calls, after the first one at once, and no others.
func TestRouterIsolatesAnUnavailableCell(t *testing.T) {
	t.Parallel()
	r, h, _ := newRouter(t, map[string]placement.Connection{"dead": {Address: testkit.FreeAddress(t)}})
	if err := upsertTo(t, r, "dead"); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("Upsert = %v, want Unavailable", err)
	}
	if err := upsertTo(t, r, "dead"); err == nil || !strings.Contains(err.Error(), "cell dead does not respond") {
		t.Errorf("Upsert = %v, want to be rejected without a call", err)
	}
	if err := upsertTo(t, r, ""); err != nil || h.upserts != 1 {
		t.Errorf("Upsert in the default cell = %v after %d calls, want one that succeeds", err, h.upserts)
	}
	if err := upsertTo(t, r, "unknown"); !errors.Is(err, placement.ErrNotConnected) || !fault.Is(err, fault.Unavailable) {
		t.Errorf("Upsert in an unknown cell = %v, want ErrNotConnected, which is Unavailable", err)
	}
}

func TestRouterFollowsTheDirectory(t *testing.T) {
	t.Parallel()
	connections := map[string]placement.Connection{"eu": {Address: testkit.FreeAddress(t)}, "us": {Address: testkit.FreeAddress(t)}}
	r, _, dir := newRouter(t, map[string]placement.Connection{"eu": connections["eu"]})
	isConnected := func(cell string) bool {
		return !errors.Is(r.Ping(t.Context(), cell, connections[cell]), placement.ErrNotConnected)
	}
	connected := func(cell string, want bool) {
		t.Helper()
		if err := r.Load(dir); err != nil {
			t.Fatal(err)
		}
		if got := isConnected(cell); got != want {
			t.Errorf("cell %s: connected %t, want %t", cell, got, want)
		}
	}
	connected("eu", true)
	connected("us", false)
	writeCell(t, dir, "us", connections["us"])
	if err := os.Remove(filepath.Join(dir, "eu.json")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "..data"), 0o700); err != nil { // as Kubernetes does
		t.Fatal(err)
	}
	connected("us", true)
	connected("eu", false)
	if err := os.WriteFile(filepath.Join(dir, "bad.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Load(dir); err == nil {
		t.Error("a file that is not JSON was accepted")
	}
	if !isConnected("us") {
		t.Error("the cells were removed because one file is wrong")
	}
	if err := r.Load(filepath.Join(dir, "missing")); err != nil {
		t.Errorf("Load of a missing directory = %v: the Secret does not exist before the first Cell", err)
	}
	if isConnected("us") {
		t.Error("the cell remains without its file")
	}
}

// A ping tests the requested connection, and never that which a change has not replaced yet.
func TestRouterPingsTheConnection(t *testing.T) {
	t.Parallel()
	server := testkit.Milvus(t)
	old := placement.Connection{Address: server.Addr, Username: server.User, Password: server.Password}
	r, _, dir := newRouter(t, map[string]placement.Connection{"eu": old})
	if err := r.Ping(t.Context(), "eu", old); err != nil {
		t.Fatalf("Ping: %v", err)
	}
	changed := old
	changed.Password += "-changed"
	if err := r.Ping(t.Context(), "eu", changed); !errors.Is(err, placement.ErrNotConnected) {
		t.Errorf("Ping before the change is loaded = %v, want ErrNotConnected", err)
	}
	writeCell(t, dir, "eu", changed)
	if err := r.Load(dir); err != nil {
		t.Fatal(err)
	}
	if err := r.Ping(t.Context(), "eu", changed); err == nil || errors.Is(err, placement.ErrNotConnected) {
		t.Errorf("Ping with a wrong password = %v, want an error of Milvus", err)
	}
}

// Every call reaches the Milvus instance of a cell.
func TestRouterReachesACell(t *testing.T) {
	t.Parallel()
	b, server := setup(t), testkit.Milvus(t)
	connection := placement.Connection{Address: server.Addr, Username: server.User, Password: server.Password}
	r, h, _ := newRouter(t, map[string]placement.Connection{"eu": connection})
	if err := r.Ping(t.Context(), "eu", connection); err != nil {
		t.Fatalf("Ping: %v", err)
	}
	at := placement.Location{Cell: "eu", Collection: b.prefix + b.location.Collection, Partition: "p_router"}
	if _, err := placement.WaitLoaded(r).Ensure(t.Context(), placement.Placement{Location: at}); err != nil {
		t.Fatalf("Ensure: %v", err)
	}
	if err := r.Upsert(t.Context(), b.tenant, at, []indexing.Entry{entry(1, b.alice.User, 5), entry(2, b.bob.User, 5)}); err != nil {
		t.Fatalf("Upsert: %v", err)
	}
	ids, err := r.List(t.Context(), b.tenant, at, 0, 10)
	if diff := cmp.Diff([]retrieve.UnitID{1, 2}, ids); diff != "" || err != nil {
		t.Errorf("List: %v (-want +got):\n%s", err, diff)
	}
	ids, err = r.ListUser(t.Context(), b.bob, at, 0, 10)
	if diff := cmp.Diff([]retrieve.UnitID{2}, ids); diff != "" || err != nil {
		t.Errorf("ListUser: %v (-want +got):\n%s", err, diff)
	}
	hits, err := r.Search(t.Context(), b.alice, at, retrieve.Request{Kind: retrieve.Memory, Limit: 5}, axis(1))
	if diff := cmp.Diff([]retrieve.UnitID{1}, sortedIDs(hits)); diff != "" || err != nil {
		t.Errorf("Search: %v (-want +got):\n%s", err, diff)
	}
	if err := r.Delete(t.Context(), b.tenant, at, []retrieve.UnitID{1}); err != nil {
		t.Errorf("Delete: %v", err)
	}
	if ids := b.list(t, placement.Location{Collection: b.location.Collection, Partition: at.Partition}); len(ids) != 1 {
		t.Errorf("the partition contains %v after the deletion, want one entry", ids)
	}
	if err := r.Drop(t.Context(), at); err != nil {
		t.Errorf("Drop: %v", err)
	}
	if _, err := r.List(t.Context(), b.tenant, at, 0, 10); !errors.Is(err, placement.ErrNoPartition) {
		t.Errorf("List after Drop = %v, want ErrNoPartition", err)
	}
	if h.upserts != 0 {
		t.Error("a call for the cell reached the default one")
	}
}
