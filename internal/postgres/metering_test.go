package postgres_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/metering"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// yesterday makes everything that was metered until now one day older.
func (b *testBundle) yesterday(t *testing.T) {
	t.Helper()
	exec(t, b.owner, "update usage set metered_on = metered_on - 1")
	exec(t, b.owner, "update usage_days set day = day - 1000")
	exec(t, b.owner, "update usage_days set day = day + 999")
}

func (b *testBundle) today(t *testing.T) metering.Day {
	t.Helper()
	now, err := b.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return metering.DayOf(now)
}

func before(d metering.Day, days int) metering.Day { return metering.Day{Time: d.AddDate(0, 0, -days)} }

// usageOf returns the usage of a tenant on a day, which it closes; zero if the day has none.
func (b *testBundle) usageOf(t *testing.T, id tenant.ID, day metering.Day) metering.Usage {
	t.Helper()
	if err := b.CloseDay(t.Context(), day); err != nil {
		t.Fatal(err)
	}
	all, err := b.UsageOf(t.Context(), day)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range all {
		if u.Tenant == id {
			return u
		}
	}
	return metering.Usage{}
}

func (b *testBundle) report(t *testing.T, journal uuid.UUID, id tenant.ID, day metering.Day, n int64) {
	t.Helper()
	err := b.ReportRequests(t.Context(), journal, map[metering.TenantDay]int64{{Tenant: id, Day: day}: n})
	if err != nil {
		t.Fatal(err)
	}
}

// words returns the tokens that are embedded for a memory of one unit, as these tests count.
func words(text string) int64 {
	return int64(len(strings.Fields(retrieve.MemoryUnits(text)[0].Dense)))
}

// A day contains the storage at its end and what was embedded on it, although the values
// change later, and nothing of other tenants.
func TestUsageOfDays(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	alice, other := b.users[0], b.users[2]
	v := randomUnit(rand.New(rand.NewPCG(1, 1)))
	as := tenant.WithActor(t.Context(), tenant.Actor{Kind: tenant.ActorUser, Via: "token"})
	create := func(scope tenant.Scope, text string, vector []float32) string {
		units := retrieve.MemoryUnits(text)
		for i := range units {
			units[i].Vector = vector
		}
		created, err := b.Memories().Create(as, scope, memory.NewMemory{CreateInput: memory.CreateInput{Text: text}, Tokens: 1, Units: units})
		if err != nil {
			t.Fatal(err)
		}
		return created.ID
	}

	first := create(alice, "one two three", v)
	b.remember(t, alice, "not embedded yet", nil)
	create(other, "of another tenant", v)
	if err := b.SealRecords(t.Context(), alice.Tenant, true); err != nil {
		t.Fatal(err)
	}
	b.yesterday(t)
	b.yesterday(t) // a day without changes
	if _, err := b.Memories().Delete(as, alice, []string{first}); err != nil {
		t.Fatal(err)
	}
	late := b.unitsOf(t, b.remember(t, alice, "embedded by a job", nil))[0]
	for range 2 { // a job may run twice
		if err := b.SaveVectors(t.Context(), alice.Tenant, []tenant.UserID{alice.User}, 0, []retrieve.Unit{{ID: late, Dense: retrieve.MemoryDense("embedded by a job"), Vector: v}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.SealRecords(t.Context(), alice.Tenant, true); err != nil {
		t.Fatal(err)
	}

	today := b.today(t)
	stored := int64(len("one two three") + len("not embedded yet"))
	want := map[int]metering.Usage{
		3: {},
		2: {Changes: 1, Storage: stored, Embedded: words("one two three")},
		1: {Storage: stored},
		0: {Changes: 1, Storage: int64(len("not embedded yet") + len("embedded by a job")), Embedded: words("embedded by a job")},
	}
	for days, w := range want {
		got := b.usageOf(t, alice.Tenant, before(today, days))
		if days < 3 {
			w.Tenant, w.Namespace, w.Name = alice.Tenant, b.specs[0].Namespace, b.specs[0].Name
		}
		if diff := cmp.Diff(w, got); diff != "" {
			t.Errorf("usage %d days ago (-want +got):\n%s", days, diff)
		}
	}
	if got := b.usageOf(t, other.Tenant, before(today, 2)).Embedded; got != words("of another tenant") {
		t.Errorf("the other tenant embedded %d tokens, want %d", got, words("of another tenant"))
	}
}

// The tokens of a unit that became inactive while it was embedded are not counted.
func TestTokensOfInactiveUnitsAreNotCounted(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	alice := b.users[0]
	var embedded []retrieve.Unit
	for _, text := range []string{"one two three", "four"} {
		embedded = append(embedded, retrieve.Unit{ID: b.unitsOf(t, b.remember(t, alice, text, nil))[0], Dense: retrieve.MemoryDense(text), Vector: []float32{1, 0}})
	}
	exec(t, b.owner, "update units set active = false where id = $1", embedded[0].ID)
	if err := b.SaveVectors(t.Context(), alice.Tenant, []tenant.UserID{alice.User}, 0, embedded, nil); err != nil {
		t.Fatal(err)
	}
	if n := b.count(t, "select embedded_tokens from usage where tenant_id = $1", alice.Tenant); int64(n) != words("four") {
		t.Errorf("%d tokens, want %d", n, words("four"))
	}
}

// Tokens are counted while other writers of the tenant can have the lock of the usage row. Only one of several jobs counts a unit,
// also if all of them wait for that lock.
func TestTokensAreCountedBeforeTheLock(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, nil)
	alice := b.users[0]
	var calls atomic.Int64
	both := make(chan struct{})
	writer, err := b.owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = writer.Rollback(context.WithoutCancel(t.Context())) }()
	db, err := postgres.Open(t.Context(), postgres.Config{URL: d.AppURL, Generation: postgrestest.Generation, CountTokens: func(string) int {
		if _, err := b.owner.Exec(t.Context(), "select from usage where tenant_id = $1 for share nowait", alice.Tenant); err != nil {
			t.Errorf("lock of the usage row while tokens are counted: %v", err)
			return 7
		}
		if calls.Add(1) == 2 {
			if _, err := writer.Exec(t.Context(), "select from usage where tenant_id = $1 for update", alice.Tenant); err != nil {
				t.Error(err)
			}
			close(both)
		}
		<-both
		return 7
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	unit := b.unitsOf(t, b.remember(t, alice, "embedded by two jobs", nil))[0]
	v := randomUnit(rand.New(rand.NewPCG(1, 1)))
	var jobs sync.WaitGroup
	for range 2 {
		jobs.Go(func() {
			if err := db.SaveVectors(t.Context(), alice.Tenant, []tenant.UserID{alice.User}, 0, withVectors(map[retrieve.UnitID][]float32{unit: v}), nil); err != nil {
				t.Error(err)
			}
		})
	}
	<-both
	exec(t, b.owner, `do $$ begin while 2 > (select count(distinct pid) from pg_locks join pg_stat_activity using (pid) where datname = current_database() and not granted) loop
		perform pg_sleep(0.005), pg_stat_clear_snapshot(); end loop; end $$`)
	if err := writer.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	jobs.Wait()
	if n := calls.Load(); n != 2 {
		t.Errorf("tokens were counted %d times, want 2", n)
	}
	if n := b.count(t, "select embedded_tokens from usage where tenant_id = $1", alice.Tenant); n != 7 {
		t.Errorf("%d tokens, want 7", n)
	}
}

// A journal counts once, and what is reported for a day that was exported counts on the next.
func TestReportedRequests(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id, day := b.users[0].Tenant, before(b.today(t), 1)
	b.yesterday(t)
	journal := uuid.New()
	for range 2 {
		b.report(t, journal, id, day, 5)
	}
	b.report(t, uuid.New(), id, day, 1)
	if got := b.usageOf(t, id, day).Requests; got != 6 {
		t.Errorf("%d requests, want 6", got)
	}
	b.report(t, uuid.New(), id, day, 2)
	if got := b.usageOf(t, id, day).Requests; got != 6 {
		t.Errorf("%d requests after the export, want 6", got)
	}
	if got := b.usageOf(t, id, b.today(t)).Requests; got != 2 {
		t.Errorf("%d requests on the next day, want 2", got)
	}
	if got := b.usageOf(t, b.users[2].Tenant, day).Requests; got != 0 {
		t.Errorf("%d requests of another tenant", got)
	}
}

// The export of a day waits for the transactions that changed the usage on it.
func TestExportWaitsForWrites(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	tx, err := b.owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "update usage set storage = storage where tenant_id = $1", string(b.users[0].Tenant)); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() { closed <- b.CloseDay(t.Context(), b.today(t)) }()
	select {
	case err := <-closed:
		t.Fatalf("the day was closed during a write: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
}

// The export of a day that waits for a long transaction of one tenant does not block the writes, the audit log and the reports of
// the other.
func TestExportDoesNotBlockOtherTenants(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	writer, other := b.users[0], b.users[2] // CloseDay locks the usage of the other tenant first
	if writer.Tenant < other.Tenant {
		writer, other = other, writer
	}
	tx, err := b.owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), "select from usage where tenant_id = $1 for update", string(writer.Tenant)); err != nil {
		t.Fatal(err)
	}
	as := tenant.WithActor(t.Context(), tenant.Actor{Kind: tenant.ActorUser, Via: "token"})
	if _, err := b.Memories().Create(as, other, newMemory("before the export")); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() { closed <- b.CloseDay(context.WithoutCancel(t.Context()), b.today(t)) }()
	awaitLockWait(t, b.owner)

	ctx, cancel := context.WithTimeout(as, 4*postgres.LockTimeout)
	defer cancel()
	if _, err := b.Memories().Create(ctx, other, newMemory("during the export")); err != nil {
		t.Errorf("a write of the other tenant: %v", err)
	}
	if err := b.SealRecords(ctx, other.Tenant, true); err != nil {
		t.Errorf("seal the records of the other tenant: %v", err)
	}
	if err := b.ReportRequests(ctx, uuid.New(), map[metering.TenantDay]int64{{Tenant: other.Tenant, Day: b.today(t)}: 1}); err != nil {
		t.Errorf("report requests of the other tenant: %v", err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
}

// awaitLockWait waits until a session waits for a lock.
func awaitLockWait(t *testing.T, owner *pgxpool.Pool) {
	t.Helper()
	for !waitsForLock(t, owner) {
	}
}

// waitsForLock reports whether a session waits for a lock.
func waitsForLock(t *testing.T, owner *pgxpool.Pool) bool {
	t.Helper()
	return count(t, owner, "select count(*) from pg_locks join pg_stat_activity using (pid) where datname = current_database() and not granted") > 0
}

// The usage of a deleted tenant stays until it expires. Then the values of a tenant that does
// not change stay as well.
func TestUsageExpires(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id, kept := b.users[0].Tenant, b.users[2].Tenant
	b.remember(t, b.users[0], "some text", nil)
	b.remember(t, b.users[2], "some text", nil)
	b.yesterday(t)
	if _, err := b.Retire(t.Context(), b.specs[0].ID, tenant.Delete); err != nil {
		t.Fatal(err)
	}
	workJobs(t, b.DB, b.owner)
	today := b.today(t)
	if got := b.usageOf(t, id, before(today, 1)); got.Storage != int64(len("some text")) || got.Name != "" {
		t.Errorf("usage on the day before the deletion: %+v", got)
	}
	if got := b.usageOf(t, id, today); got.Storage != 0 {
		t.Errorf("usage after the deletion: %+v", got)
	}
	exec(t, b.owner, "update usage_days set day = day - 2000")
	exec(t, b.owner, "update usage_days set day = day + 1500")
	exec(t, b.owner, "update usage set metered_on = metered_on - 500")
	for _, tn := range []tenant.ID{id, kept} {
		if err := b.ExpireRecords(t.Context(), tn); err != nil {
			t.Fatal(err)
		}
	}
	if n := b.count(t, "select count(*) from usage_days where tenant_id = $1", id); n != 0 {
		t.Errorf("%d days of a deleted tenant are kept", n)
	}
	if got := b.usageOf(t, kept, before(today, 1)).Storage; got != int64(len("some text")) {
		t.Errorf("storage of a tenant that did not change is %d", got)
	}
}
