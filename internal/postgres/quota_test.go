package postgres_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// A refusal carries its reason: nothing is read to explain it, only the transaction is rolled back.
func TestRefusedMemoryNeedsNoRoundTripForItsReason(t *testing.T) {
	t.Parallel()
	proxy, d := newFlakyConn(t, postgrestest.Create(t))
	b := setupIn(t, d, func(q *tenant.Quota) { q.Memories, q.UserMemories = 1, tenant.NoLimit })
	b.remember(t, b.users[0], "kept", nil)
	for range 2 {
		prepared := b.prepare(t, newMemory(uuid.NewString()))
		before := proxy.roundTrips.Load()
		_, err := b.Memories().Create(t.Context(), b.users[0], prepared)
		wantRefusal(t, err, tenant.QuotaExceeded{Resource: tenant.ResourceMemories, Limit: 1, Used: 1})
		if n := proxy.roundTrips.Load() - before; n > 3 {
			t.Errorf("%d round trips, want the creation, its rollback and the preparation of a statement that failed before", n)
		}
	}
}

// A quota that is already exceeded, because it was lowered, refuses only what it limits.
func TestLoweredQuotaRefusesWhatItLimits(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id := b.remember(t, b.users[0], "one", nil)
	b.remember(t, b.users[0], "two", nil)
	for name, tt := range map[string]struct {
		lower func(*tenant.Quota)
		want  tenant.QuotaExceeded
	}{
		"memories":           {func(q *tenant.Quota) { q.Memories = 1 }, tenant.QuotaExceeded{Resource: tenant.ResourceMemories, Limit: 1, Used: 2}},
		"memories of a user": {func(q *tenant.Quota) { q.UserMemories = 0 }, tenant.QuotaExceeded{Resource: tenant.ResourceUserMemories, Used: 2}},
		"storage first": {
			func(q *tenant.Quota) { q.Storage, q.Memories = 6, 1 },
			tenant.QuotaExceeded{Resource: tenant.ResourceStorage, Limit: 6, Used: 6},
		},
	} {
		quota := b.specs[0].Quota
		b.setQuota(t, tt.lower)
		_, err := b.Memories().Create(t.Context(), b.users[0], newMemory("three"))
		wantRefusal(t, err, tt.want)
		b.setQuota(t, func(q *tenant.Quota) { *q = quota })
		if t.Failed() {
			t.Fatalf("with the quota of %s", name)
		}
	}
	b.setQuota(t, func(q *tenant.Quota) { q.Memories, q.Storage = 0, 0 })
	if _, err := b.Memories().Delete(t.Context(), b.users[0], []string{id}); err != nil {
		t.Errorf("deletion over the quota: %v", err)
	}
}

func wantRefusal(t *testing.T, err error, want tenant.QuotaExceeded) {
	t.Helper()
	got, ok := errors.AsType[tenant.QuotaExceeded](err)
	if !ok {
		t.Fatalf("error %v, want %v", err, want)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("refusal (-want +got):\n%s", diff)
	}
}
