package placement_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/test/installation"
)

// TestIndexIsAddedAndRemoved starts with PostgreSQL alone, adds Milvus and removes it again, while
// servers with and without Milvus answer searches and store messages. No search misses its message.
func TestIndexIsAddedAndRemoved(t *testing.T) {
	t.Parallel()
	h := &host{Installation: installation.New(t, installation.Options{})}
	alone := []string{"MNEMO_INDEX=none", "MILVUS_ADDRESS="}
	operator := h.Operate(t, alone...)
	h.server = h.Serve(t, alone...)
	u := h.add(t, "grower", v1alpha1.Partition, placement.ExactUnits+500)
	u.wantIndexed(t, false)
	u.mustFind(t)

	operator.Kill()
	connected := u.at(h.Serve(t))
	whileInUse(t, []*user{u, connected}, func() {
		operator = h.Operate(t)
		u.wantIndexed(t, true)
	})
	h.killServer(t)
	connected.settle(t)
	connected.isIndexed(t)
	connected.mustFind(t)
	left := connected.location(t)

	operator.Kill()
	leaving := u.at(h.Serve(t, "MNEMO_INDEX=none"))
	whileInUse(t, []*user{connected, leaving}, func() {
		h.Operate(t, "MNEMO_INDEX=none")
		u.wantIndexed(t, false)
	})
	if _, err := h.Owner.Exec(t.Context(), "update river_job set scheduled_at = now(), state = 'available' where kind = 'placement.drop' and state = 'scheduled'"); err != nil {
		t.Fatal(err)
	}
	installation.Eventually(t, installation.Patience, func() string {
		if _, err := h.Index.List(t.Context(), tenant.ID(u.id(t)), left, 0, 1); !errors.Is(err, placement.ErrNoPartition) {
			return "the partition was not dropped"
		}
		return ""
	})
	u.at(h.Serve(t, alone...)).mustFind(t)
}

// at returns the user of another server.
func (u *user) at(server *installation.Process) *user {
	other := *u
	other.host = &host{Installation: u.host.Installation, server: server}
	return &other
}

// location returns where the tenant is placed.
func (u *user) location(t *testing.T) placement.Location {
	t.Helper()
	state, err := u.host.DB.GetPlacement(t.Context(), tenant.ID(u.id(t)))
	if err != nil {
		t.Error(err)
	}
	return state.Current.Location
}

// wantIndexed waits until the tenant is placed in an index, or in none.
func (u *user) wantIndexed(t *testing.T, want bool) {
	t.Helper()
	installation.Eventually(t, installation.Patience, func() string {
		if u.location(t).Indexed() != want || u.migration(t).Running {
			return "the tenant has not moved"
		}
		return ""
	})
}

// whileInUse calls change while the servers of the users answer searches and the first stores
// messages, which are searched at once. While the tenant is in no index, every search must find its
// message; in one, a search that Milvus does not answer in time may be degraded.
func whileInUse(t *testing.T, users []*user, change func()) {
	t.Helper()
	stop := make(chan struct{})
	var wait sync.WaitGroup
	var searches, degradedSearches atomic.Int64
	for i, u := range users {
		wait.Go(func() {
			tick := time.NewTicker(interval)
			defer tick.Stop()
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				case <-tick.C:
				}
				number := (n * 37) % u.messages
				if i == 0 && n%10 == 9 {
					number = u.messages
					u.say(t, number, number+1)
					u.messages++
				}
				unindexed := !u.location(t).Indexed()
				right, degraded, err := u.find(number)
				if err != nil || !right && unindexed && number < u.messages-1 && !u.location(t).Indexed() {
					t.Errorf("server %d, number %d: found %t, degraded %t, %v", i, number, right, degraded, err)
				}
				if searches.Add(1); degraded {
					degradedSearches.Add(1)
				}
			}
		})
	}
	change()
	close(stop)
	wait.Wait()
	t.Logf("%d searches during the change, %d degraded", searches.Load(), degradedSearches.Load())
	if searches.Load() == 0 {
		t.Error("no search ran during the change")
	}
}
