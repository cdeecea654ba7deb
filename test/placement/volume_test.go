package placement_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/devenv/milvus"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/testkit"
	"github.com/mnemo-dev/mnemo/test/installation"
)

// TestVolumeLost deletes the whole Milvus volume. Until the operator and the jobs
// have rebuilt the index, each response is right or degraded.
func TestVolumeLost(t *testing.T) {
	t.Parallel()
	m, dir := startMilvus(t)
	h := newHost(t, installation.Options{Milvus: testkit.MilvusAddr{Addr: m.Addr, User: m.User, Password: m.Password}}, "MNEMO_RESYNC=5s")
	users := []*user{
		h.add(t, "own", v1alpha1.Partition, placement.ExactUnits+500),
		h.add(t, "shared", v1alpha1.Shared, placement.ExactUnits+100),
	}
	for _, u := range users {
		u.mustFind(t)
	}
	if err := m.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, u := range users {
		if _, degraded, err := u.find(1); err != nil || !degraded {
			t.Errorf("with Milvus unavailable: degraded %t, %v, want a degraded response", degraded, err)
		}
		u.say(t, u.messages, u.messages+20) // stored now, indexed later
		u.messages += 20
	}
	if err := os.RemoveAll(filepath.Join(dir, "milvus", "data")); err != nil {
		t.Fatal(err)
	}
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	started, incomplete := time.Now(), 0
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for _, u := range users {
		for whole := 0; whole < 100; <-tick.C {
			right, degraded, err := u.find((whole * 37) % u.messages)
			switch {
			case err != nil:
				t.Fatal(err)
			case right && !degraded:
				whole++
			default:
				incomplete++
				whole = 0
			}
			if time.Since(started) > installation.Patience {
				t.Fatalf("searches of %s have not recovered: found %t, degraded %t", u.tenant, right, degraded)
			}
		}
	}
	t.Logf("searches recovered %v after the start of the empty Milvus; %d were incomplete until then", time.Since(started).Round(time.Millisecond), incomplete)
	if incomplete == 0 {
		t.Error("no search was incomplete, so the volume was not lost")
	}
	for _, u := range users {
		u.settle(t)
		u.mustFind(t)
		u.isIndexed(t)
	}
	t.Logf("all units are in Milvus %v after its start", time.Since(started).Round(time.Millisecond))
}

func startMilvus(t *testing.T) (m *milvus.Server, dir string) {
	t.Helper()
	cache, err := devenv.OpenCache(devenv.NewProgress(io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	if m, err = milvus.Start(t.Context(), devenv.Options{Dir: dir, Cache: cache}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Stop(); err != nil {
			t.Error(err)
		}
	})
	return m, dir
}

// isIndexed queries Milvus.
func (u *user) isIndexed(t *testing.T) {
	t.Helper()
	id := tenant.ID(u.id(t))
	location, err := u.host.DB.EnsurePlacement(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	live, err := u.host.DB.Live(t.Context(), id, 0, 10*placement.ExactUnits)
	if err != nil {
		t.Fatal(err)
	}
	installation.Eventually(t, installation.Patience, func() string {
		held, err := u.host.Index.List(t.Context(), id, location, 0, 10*placement.ExactUnits)
		if err != nil {
			return err.Error()
		}
		if len(held) != len(live) || len(live) < u.messages {
			return fmt.Sprintf("Milvus contains %d units, PostgreSQL %d", len(held), len(live))
		}
		return ""
	})
}
