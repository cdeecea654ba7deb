package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mnemo-dev/mnemo/internal/erasure"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// attachLedger makes the database record erasures.
func attachLedger(t *testing.T, db *postgres.DB) (ledger string) {
	t.Helper()
	ledger = uuid.NewString()
	if err := db.Erasures().Attach(t.Context(), ledger, 0, nil); err != nil {
		t.Fatal(err)
	}
	return ledger
}

func pendingErasures(t *testing.T, db *postgres.DB) []erasure.Entry {
	t.Helper()
	entries, err := db.Erasures().Pending(t.Context(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// openBundle opens a database with its tenants.
func openBundle(t *testing.T, d postgrestest.Database) *testBundle {
	t.Helper()
	b := &testBundle{DB: postgrestest.Open(t, d)}
	var err error
	if b.owner, err = pgxpool.New(t.Context(), d.OwnerURL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.owner.Close)
	return b
}

// restore restores a dump and repeats the erasures in it.
func restore(t *testing.T, dump string, entries []erasure.Entry) *testBundle {
	t.Helper()
	b := openBundle(t, postgrestest.Restore(t, dump))
	store := b.Erasures()
	if err := store.BeginReplay(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a replay that was interrupted is repeated
		for _, e := range entries {
			if err := store.Replay(t.Context(), e); err != nil {
				t.Fatalf("repeat %+v: %v", e, err)
			}
		}
	}
	b.checkCounters(t)
	return b
}

// An account is erased up to the time of its erasure. What its user stored since survives a ledger that is repeated
// although the backup reflects it, and what a restored database stores afterwards is not erased by a repetition.
func TestAccountErasureEndsAtItsTime(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	g := newGrantIn(t, setupIn(t, d, nil))
	attachLedger(t, g.DB)
	fill := func(b *testBundle, mark string) {
		t.Helper()
		b.fillAccount(t, g.scope, mark)
		b.merge(t, g.scope, b.remember(t, g.scope, mark+" kept", nil), b.remember(t, g.scope, mark+" merged", nil))
	}
	rows := func(b *testBundle, scope tenant.Scope) map[string]int {
		t.Helper()
		out := b.rowsOfUser(t, scope)
		for _, table := range []string{"user_tokens", "oauth_grants", "extractions", "imports"} {
			out[table] = b.count(t, "select count(*) from "+table+" where user_id = $1", int64(scope.User))
		}
		return out
	}
	fill(g.testBundle, "before")
	g.upload(t, g.scope)
	g.extract(t, g.scope)
	exec(t, g.owner, "update extractions set input = null, finished_at = now()")
	g.token(t, 1)
	g.fillAccount(t, g.users[1], "bob")
	theirs := rows(g.testBundle, g.users[1])
	before := postgrestest.Dump(t, d)
	g.purge(t, g.scope)
	erased := rows(g.testBundle, g.scope)
	entries := pendingErasures(t, g.DB)
	fill(g.testBundle, "after")
	g.token(t, 2)
	want := rows(g.testBundle, g.scope)
	// An imported export keeps the times of its memories.
	exec(t, g.owner, "update memories set created_at = '2020-01-01', updated_at = '2020-01-01' where user_id = $1", int64(g.scope.User))
	after := postgrestest.Dump(t, d)

	restored := restore(t, before, entries)
	if diff := cmp.Diff(erased, rows(restored, g.scope)); diff != "" {
		t.Errorf("rows after the repetition in an earlier backup (-want +got):\n%s", diff)
	}
	fill(restored, "after")
	stored := rows(restored, g.scope)
	for _, e := range entries {
		if err := restored.Erasures().Replay(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(stored, rows(restored, g.scope)); diff != "" {
		t.Errorf("rows that were stored after the repetition (-want +got):\n%s", diff)
	}
	later := restore(t, after, entries)
	if diff := cmp.Diff(want, rows(later, g.scope)); diff != "" {
		t.Errorf("rows that were stored after the erasure (-want +got):\n%s", diff)
	}
	for _, b := range []*testBundle{restored, later} {
		if diff := cmp.Diff(theirs, rows(b, g.users[1])); diff != "" {
			t.Errorf("rows of another user (-want +got):\n%s", diff)
		}
	}
}

// The deletion of a memory does not include memories that its user had restored from it since the backup.
func TestUnmergedMemoriesSurviveRepeatedDeletion(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, nil)
	attachLedger(t, b.DB)
	scope := b.users[0]
	kept, unmerged, nested := b.remember(t, scope, "a", nil), b.full(t, scope, "b"), b.remember(t, scope, "c", nil)
	deleted, inDeleted, out := b.full(t, scope, "d"), b.remember(t, scope, "e", nil), b.remember(t, scope, "f", nil)
	b.merge(t, scope, unmerged, nested)
	b.merge(t, scope, deleted, inDeleted, out)
	b.merge(t, scope, kept, unmerged, deleted)
	theirs := b.remember(t, b.users[1], "a", nil)
	b.merge(t, b.users[1], theirs, b.remember(t, b.users[1], "b", nil))
	dump := postgrestest.Dump(t, d)

	b.unmerge(t, scope, deleted, out)
	b.unmerge(t, scope, kept, unmerged)
	b.forget(t, scope, kept)
	restored := restore(t, dump, pendingErasures(t, b.DB))
	for _, id := range []string{unmerged, out} {
		restored.get(t, scope, id)
	}
	if diff := cmp.Diff([]string{nested}, restored.mergedInto(t, scope, unmerged)); diff != "" {
		t.Errorf("memories merged into one that was restored (-want +got):\n%s", diff)
	}
	gone := []string{kept, deleted, inDeleted}
	if n := restored.count(t, "select (select count(*) from memories where id = any($1)) + (select count(*) from merged_memories where id = any($1))", gone); n != 0 {
		t.Errorf("%d deleted memories are left", n)
	}
	if n := len(restored.mergedInto(t, b.users[1], theirs)); n != 1 {
		t.Errorf("another user has %d merged memories, want 1", n)
	}
}

// TestAccessEndsAgain covers the revocations that TestErasureSurvivesRestore
// (cmd/mnemo) does not.
func TestAccessEndsAgain(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	g := newGrantIn(t, setupIn(t, d, nil)) // tokens {1, …}
	attachLedger(t, g.DB)
	g.grant(t, 50)
	if err := g.SpendSecret(t.Context(), tenant.Code, tenant.Hash{50}, accepts, g.next()); err != nil { // tokens {2, …}
		t.Fatal(err)
	}
	g.upload(t, g.users[2])
	dump := postgrestest.Dump(t, d)

	if err := g.RevokeGrant(t.Context(), "c", tenant.AccessToken, tenant.Hash{2, 1}); err != nil {
		t.Fatal(err)
	}
	g.n = 9
	if err := g.refresh(t, 1, g.next()); err != nil {
		t.Fatal(err)
	}
	spec := g.specs[1]
	removed := spec.Users[0].Name
	spec.Users = spec.Users[1:] // with Retain
	g.apply(t, spec)

	restored := &grantEnv{testBundle: restore(t, dump, pendingErasures(t, g.DB)), scope: g.scope, name: g.name}
	restored.identifies(t, 2, false) // revoked
	restored.identifies(t, 1, true)
	if err := restored.refresh(t, 1, g.next()); !fault.Is(err, fault.NotFound) {
		t.Errorf("a used refresh token: %v, want NotFound", err)
	}
	if n := restored.count(t, "select count(*) from users where name = $1 and tenant_id = $2 and active", removed, g.specs[1].ID); n != 0 {
		t.Error("a removed user is active again")
	}
	if n := restored.count(t, "select count(*) from import_chunks"); n != 0 {
		t.Errorf("%d parts of an unfinished import are left", n)
	}
	if n := restored.count(t, "select count(*) from imports where status not in ('done', 'failed')"); n != 0 {
		t.Errorf("%d imports continue", n)
	}
}

// The conversations of an import that ends in a restored database become active within the quota.
func TestConversationsOfEndedImportsBecomeActive(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Conversations = 2 })
	b.storeImport(t, b.users[0], 3)
	b.storeImport(t, b.users[2], 1)
	if err := b.Erasures().BeginReplay(t.Context()); err != nil {
		t.Fatal(err)
	}
	workJobs(t, b.DB, b.owner)
	for user, want := range map[int]int64{0: 2, 2: 1} {
		if got := b.balance(t, b.users[user]); got.active != want {
			t.Errorf("conversations of user %d: %+v, want %d active ones", user, got, want)
		}
	}
}

// A password that its user replaced after the backup is unknown to everybody after the
// restore: the operator must not assume that the user has one.
func TestReplacedPasswordAfterRestore(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	g := newGrantIn(t, setupIn(t, d, nil))
	attachLedger(t, g.DB)
	replace := func(password tenant.Hash) {
		t.Helper()
		if err := g.ReplacePassword(t.Context(), g.scope, g.session, password); err != nil {
			t.Fatal(err)
		}
	}
	replace(tenant.Hash{98, 2})
	dump := postgrestest.Dump(t, d)
	replace(tenant.Hash{98, 3})
	restored := restore(t, dump, pendingErasures(t, g.DB))
	for n := byte(1); n <= 3; n++ {
		err := restored.SignIn(t.Context(), tenant.SignIn{
			Name:     tenant.SignInName{Namespace: g.specs[0].Namespace, Tenant: g.specs[0].Name, User: g.name},
			Password: tenant.Hash{98, n}, Address: "192.0.2.1", Session: tenant.Hash{202, n}, Lifetime: time.Hour,
		})
		wantKind(t, fmt.Sprint("password ", n), err, fault.Unauthorized)
	}
	if _, err := restored.Session(t.Context(), g.session); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("the session that began under the replaced password: %v, want Unauthorized", err)
	}
	if n := restored.count(t, "select count(*) from users where password_replaced"); n != 0 {
		t.Errorf("%d users count as having replaced the password", n)
	}
}

func TestErasuresAreRecordedOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.fillAccount(t, b.users[0], "before")
	b.purge(t, b.users[0])
	if entries := pendingErasures(t, b.DB); len(entries) > 0 {
		t.Errorf("%d erasures are recorded without a ledger", len(entries))
	}
	ledger := attachLedger(t, b.DB)
	b.fillAccount(t, b.users[0], "alice")
	b.purge(t, b.users[0])
	entries := pendingErasures(t, b.DB)
	if len(entries) != 1 || entries[0].Kind != erasure.Account {
		t.Fatalf("an account deletion is recorded as %+v, want one entry", entries)
	}
	store := b.Erasures()
	if err := store.Acknowledge(t.Context(), ledger, 7, 8, []string{entries[0].ID}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("acknowledge at a position that is not the database's: %v, want Unavailable", err)
	}
	lost := []string{entries[0].ID, uuid.NewString()} // a failover lost the transaction that erased the second
	if err := store.Acknowledge(t.Context(), ledger, 0, 2, lost); !fault.Is(err, fault.Unavailable) {
		t.Errorf("acknowledge an erasure that the database lacks: %v, want Unavailable", err)
	}
	if err := store.Acknowledge(t.Context(), ledger, 0, 1, []string{entries[0].ID}); err != nil {
		t.Fatal(err)
	}
	if entries := pendingErasures(t, b.DB); len(entries) > 0 {
		t.Errorf("%d erasures are pending after they were acknowledged", len(entries))
	}

	if _, err := b.Retire(t.Context(), b.specs[1].ID, tenant.Delete); err != nil {
		t.Fatal(err)
	}
	if _, err := b.PurgeRows(t.Context(), b.specs[1].ID); err != nil {
		t.Fatal(err)
	}
	if err := b.DeletePurged(t.Context(), b.specs[1].ID); err != nil {
		t.Fatal(err)
	}
	if entries := pendingErasures(t, b.DB); len(entries) != 1 || entries[0].Kind != erasure.Tenant {
		t.Errorf("a tenant's purge is recorded as %+v, want one entry", entries)
	}
}

// Ids of the backup are not assigned again: the index and the ledger contain ids
// that were assigned after it.
func TestIDsAreNotReusedAfterRestore(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, nil)
	attachLedger(t, b.DB)
	dump := postgrestest.Dump(t, d)
	lost := b.unitsOf(t, b.remember(t, b.users[0], "lost", nil))
	restored := restore(t, dump, nil)
	units := restored.unitsOf(t, restored.remember(t, b.users[0], "new", nil))
	if units[0] <= lost[0] {
		t.Errorf("unit %d was assigned again after the restore, want ids above %d", units[0], lost[0])
	}
}

// A failed replay is repeated every second. It must not use up the ids.
func TestIDsAreSkippedOncePerRestore(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, nil)
	attachLedger(t, b.DB)
	dump := postgrestest.Dump(t, d)
	unit := func(d postgrestest.Database, replays int) retrieve.UnitID {
		t.Helper()
		restored := openBundle(t, d)
		for range replays {
			if err := restored.Erasures().BeginReplay(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		return restored.unitsOf(t, restored.remember(t, b.users[0], fmt.Sprint("memory ", restored.count(t, "select count(*) from memories")), nil))[0]
	}
	once := postgrestest.Restore(t, dump)
	first := unit(once, 1)
	if again := unit(once, 3); again > first+100 {
		t.Errorf("unit %d after repeated replays, want one soon after %d", again, first)
	}
	if later := unit(postgrestest.Restore(t, postgrestest.Dump(t, once)), 1); later < first+1e9 {
		t.Errorf("unit %d after another restore, want one after %d", later, first+1e9)
	}
}

func TestStopErasures(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	attachLedger(t, b.DB)
	b.fillAccount(t, b.users[0], "alice")
	b.purge(t, b.users[0])
	for range 2 { // the second deletion is not recorded
		if err := b.StopErasures(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.fillAccount(t, b.users[1], "bob")
		b.purge(t, b.users[1])
		if entries := pendingErasures(t, b.DB); len(entries) > 0 {
			t.Errorf("%d erasures are pending after the recording was stopped", len(entries))
		}
	}
	state, err := b.Erasures().State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := (erasure.State{Current: true}); state != want {
		t.Errorf("state %+v, want %+v", state, want)
	}
	if err := b.CheckErasures(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("serve with a ledger: %v, want Unavailable", err)
	}
}
