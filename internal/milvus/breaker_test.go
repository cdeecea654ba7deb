package milvus

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/breaker"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// slowStore responds to Upsert once it is up. Ensure waits.
type slowStore struct {
	Backend
	up       bool
	ensuring chan struct{}
	release  chan struct{}
}

func (s *slowStore) Upsert(context.Context, tenant.ID, placement.Location, []indexing.Entry) error {
	if !s.up {
		return fault.New(fault.Unavailable, "connection refused")
	}
	return nil
}

func (s *slowStore) Ensure(context.Context, placement.Placement) (int64, error) {
	close(s.ensuring)
	<-s.release
	return 1, nil
}

// A cell that responds again is used immediately, even while a slow call to it runs.
func TestSlowCallDoesNotKeepACellClosed(t *testing.T) {
	t.Parallel()
	s := &slowStore{ensuring: make(chan struct{}), release: make(chan struct{})}
	now := time.Unix(0, 0)
	r := NewRouter(s, 1, slog.New(slog.DiscardHandler))
	r.now = func() time.Time { return now }
	r.set(map[string]placement.Connection{"other": {}})
	upsert := func() error { return r.Upsert(t.Context(), "t", placement.Location{}, nil) }
	if err := upsert(); err == nil {
		t.Fatal("Upsert succeeded while the store is down")
	}
	s.up, now = true, now.Add(breaker.FirstPause)
	done := make(chan error)
	go func() {
		_, err := r.Ensure(t.Context(), placement.Placement{})
		done <- err
	}()
	<-s.ensuring
	if err := upsert(); err != nil {
		t.Errorf("Upsert during Ensure = %v, want success", err)
	}
	close(s.release)
	if err := <-done; err != nil {
		t.Errorf("Ensure = %v", err)
	}
}
