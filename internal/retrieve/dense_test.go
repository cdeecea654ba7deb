package retrieve

import (
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/breaker"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// A query that the embedder refuses does not degrade the searches of others.
func TestRefusedQueryAffectsNoOther(t *testing.T) {
	t.Parallel()
	s := &stores{embedErr: refusedError{}}
	now := time.Now()
	e := s.engine(&now)
	if _, degraded := search(t, e, homeLocation, 1); !degraded {
		t.Error("the search without a vector is not degraded")
	}
	s.embedErr = nil
	if _, degraded := search(t, e, homeLocation, 1); degraded {
		t.Error("the next search is degraded")
	}
}

// A refusal is an answer: it ends an outage.
func TestRefusedQueryEndsOutage(t *testing.T) {
	t.Parallel()
	s := &stores{embedErr: errUnavailable}
	now := time.Now()
	e := s.engine(&now)
	search(t, e, homeLocation, 1)
	now = now.Add(breaker.FirstPause)
	s.embedErr = refusedError{}
	search(t, e, homeLocation, 1)
	s.embedErr = nil
	if _, degraded := search(t, e, homeLocation, 1); degraded {
		t.Error("the search after the refusal is degraded")
	}
}

// The vector of a long query is that of its beginning.
func TestLongQueryIsShortened(t *testing.T) {
	t.Parallel()
	long := "Where is the ferry? " + strings.Repeat("It has sailed every day. ", 40_000)
	for name, tc := range map[string]struct {
		reason   string
		text     string
		accepts  int // words
		min, max int // words that are embedded
		calls    int
	}{
		"Short":       {"a short query is unchanged", "Where is the ferry?", 1000, 4, 4, 1},
		"Long":        {"a longer query than models read", long, 1000, 200, 500, 1},
		"SmallWindow": {"an endpoint that refuses it accepts what pieces of memories have", long, 200, 100, 200, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &stores{coverage: Coverage{All: true}, refuses: func(text string) bool { return len(strings.Fields(text)) > tc.accepts }}
			now := time.Now()
			r, err := s.engine(&now).Search(t.Context(), tenant.Scope{Tenant: "t", User: 1}, homeLocation, Query{Kind: Memory, Text: tc.text, Limit: 5})
			if err != nil || r.Degraded {
				t.Errorf("%s: degraded %t, error %v", tc.reason, r.Degraded, err)
			}
			if n := len(strings.Fields(s.embedded)); !strings.HasPrefix(tc.text, s.embedded) || n < tc.min || n > tc.max {
				t.Errorf("%s: embedded %d words, want the first %d to %d", tc.reason, n, tc.min, tc.max)
			}
			if s.embedCalls != tc.calls {
				t.Errorf("%s: %d calls, want %d", tc.reason, s.embedCalls, tc.calls)
			}
		})
	}
}
