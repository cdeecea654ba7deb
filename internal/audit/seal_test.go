package audit_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// sealing is a store in which the records of some tenants cannot be sealed.
type sealing struct {
	audit.Store
	mu      sync.Mutex
	failing []tenant.ID
}

func (s *sealing) PendingTenants(context.Context) ([]tenant.ID, error) {
	return []tenant.ID{"acme", "globex", "initech"}, nil
}

func (s *sealing) SealRecords(_ context.Context, id tenant.ID, _ bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.failing, id) {
		return errors.New("duplicate key")
	}
	return nil
}

// The failure of each tenant is logged once until its records are sealed again.
func TestSealLogsEachTenant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := &sealing{}
		go audit.Seal(t.Context(), s, slog.New(slog.NewTextHandler(&out, nil)))
		for _, step := range []struct {
			reason  string
			failing []tenant.ID
			want    []string // tenants that are logged
		}{
			{"nothing fails", nil, nil},
			{"one tenant fails", []tenant.ID{"acme"}, []string{"acme"}},
			{"a second one fails", []tenant.ID{"acme", "globex"}, []string{"globex"}},
			{"the first one is sealed", []tenant.ID{"globex"}, nil},
			{"it fails again", []tenant.ID{"acme", "globex"}, []string{"acme"}},
		} {
			s.mu.Lock() // also orders the writes of the log after Reset
			out.Reset()
			s.failing = step.failing
			s.mu.Unlock()
			<-time.After(3 * time.Second)
			synctest.Wait()
			var got []string
			for _, id := range []string{"acme", "globex", "initech"} {
				if strings.Contains(out.String(), "tenant "+id) {
					got = append(got, id)
				}
			}
			if lines := strings.Count(out.String(), "\n"); !slices.Equal(got, step.want) || lines > 1 {
				t.Errorf("%s: logged %v in %d lines, want %v", step.reason, got, lines, step.want)
			}
		}
	})
}
