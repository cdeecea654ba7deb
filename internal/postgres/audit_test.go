package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// auditOf seals and returns the records of a tenant, and verifies its chain.
func (b *testBundle) auditOf(t testing.TB, id tenant.ID) []audit.Record {
	t.Helper()
	ctx := contextWithoutCancel(t)
	if err := b.SealRecords(ctx, id, true); err != nil {
		t.Fatal(err)
	}
	var out []audit.Record
	var file bytes.Buffer
	w := audit.NewWriter(&file, audit.Header{Tenant: id})
	var end audit.Head
	err := b.TenantRecords(ctx, id, func(head audit.Head, all iter.Seq2[audit.Record, error]) error {
		end = head
		for r, err := range all {
			if err != nil {
				return err
			}
			out = append(out, r)
			if err := w.Write(r); err != nil {
				return err
			}
		}
		return w.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	v, err := audit.Verify(&file, audit.Anchor(end))
	if err != nil {
		t.Fatalf("verify chain: %v", err)
	}
	if int(v.Records) != len(out) {
		t.Errorf("verified %d records, want %d", v.Records, len(out))
	}
	return out
}

// verbs returns the verbs of records after the first n.
func verbs(records []audit.Record) []string {
	out := []string{}
	for _, r := range records {
		out = append(out, string(r.Verb)+" by "+r.Actor)
	}
	return out
}

var testActor = tenant.TokenActor(tenant.HashSecret("mn_alice"))

func TestAuditRecords(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	alice := b.users[0]
	ctx := tenant.WithActor(t.Context(), testActor)
	before := len(b.auditOf(t, alice.Tenant))

	created, err := b.Memories().Create(ctx, alice, newMemory("a secret note"))
	if err != nil {
		t.Fatal(err)
	}
	id := created.ID
	if _, err := b.Memories().Create(ctx, alice, newMemory("a secret note")); err != nil { // changes nothing
		t.Fatal(err)
	}
	text := "another text"
	if _, err := b.Memories().Update(ctx, alice, memory.Edit{UpdateInput: memory.UpdateInput{ID: id, Text: &text}}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Memories().Update(ctx, alice, memory.Edit{UpdateInput: memory.UpdateInput{ID: id, Text: &text}}); err != nil { // changes nothing
		t.Fatal(err)
	}
	if _, err := b.Memories().Delete(ctx, alice, []string{id}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Memories().Delete(ctx, alice, []string{id}); err != nil { // deletes nothing
		t.Fatal(err)
	}
	got := b.auditOf(t, alice.Tenant)[before:]
	record := func(verb audit.Verb) audit.Record {
		return audit.Record{
			Tenant: alice.Tenant, Actor: "user", Via: "token", Fingerprint: testActor.Fingerprint, Verb: verb, Objects: []string{id},
		}
	}
	want := []audit.Record{record(audit.MemoryCreate), record(audit.MemoryUpdate), record(audit.MemoryDelete)}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(audit.Record{}, "Sequence", "At", "User", "Previous", "Hash")); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if got[0].User == "" || got[0].User != got[2].User {
		t.Errorf("pseudonyms are %q and %q, want the same one", got[0].User, got[2].User)
	}
}

// A failed or repeated request leaves no further record.
func TestAuditRecordsAreOfCommittedChanges(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Memories = 1 })
	alice := b.users[0]
	before := len(b.auditOf(t, alice.Tenant))
	for range 3 { // with the same idempotency key
		if _, err := b.keyed(t, alice, "key", "note"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Memories().Create(t.Context(), alice, newMemory("over the quota")); !fault.Is(err, fault.Forbidden) {
		t.Fatalf("create over the quota: %v", err)
	}
	got := verbs(b.auditOf(t, alice.Tenant)[before:])
	if diff := cmp.Diff([]string{"memory.create by system"}, got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// Each object of a large change is in exactly one record.
func TestAuditOfManyObjects(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	alice := b.users[0]
	var ids []string
	for i := range audit.MaxObjects + 50 {
		ids = append(ids, b.remember(t, alice, fmt.Sprint("note ", i), nil))
	}
	before := len(b.auditOf(t, alice.Tenant))
	if _, err := b.Memories().Delete(t.Context(), alice, ids); err != nil {
		t.Fatal(err)
	}
	var got []string
	records := b.auditOf(t, alice.Tenant)[before:]
	for _, r := range records {
		got = append(got, r.Objects...)
	}
	if len(records) != 2 {
		t.Errorf("%d records, want 2", len(records))
	}
	slices.Sort(got)
	slices.Sort(ids)
	if diff := cmp.Diff(ids, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

// Concurrent writers and sealers produce one chain without gaps or repetitions.
func TestAuditChainUnderConcurrency(t *testing.T) {
	t.Parallel()
	const writers, each = 6, 20
	b := setup(t, nil)
	alice := b.users[0]
	before := len(b.auditOf(t, alice.Tenant))
	var all, sealing sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	for range 3 {
		sealing.Go(func() {
			for ctx.Err() == nil {
				if err := b.SealRecords(t.Context(), alice.Tenant, false); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for w := range writers {
		all.Go(func() {
			for i := range each {
				b.remember(t, b.users[w%2], fmt.Sprint("note ", w, i), nil)
			}
		})
	}
	all.Wait()
	stop()
	sealing.Wait()
	if got := len(b.auditOf(t, alice.Tenant)) - before; got != writers*each {
		t.Errorf("%d records, want %d", got, writers*each)
	}
	if n := b.count(t, "select count(*) from audit_pending where tenant_id = $1", alice.Tenant); n != 0 {
		t.Errorf("%d records are pending, want none", n)
	}
}

// A user reads only records of its own data, in pages.
func TestAuditIsolation(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	want := map[tenant.Scope][]string{}
	for i := range 3 {
		for _, u := range b.users {
			want[u] = append(want[u], b.remember(t, u, fmt.Sprint("note ", i), nil))
		}
	}
	for _, u := range b.users {
		if err := b.SealRecords(t.Context(), u.Tenant, true); err != nil {
			t.Fatal(err)
		}
	}
	for _, u := range b.users {
		var got []string
		for after := int64(0); ; {
			page, err := b.UserRecords(t.Context(), u, after, 2)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			for _, r := range page {
				after = r.Sequence
				if r.Verb == audit.MemoryCreate {
					got = append(got, r.Objects...)
				}
			}
		}
		if diff := cmp.Diff(want[u], got); diff != "" {
			t.Errorf("memories in the records of %v (-want +got):\n%s", u, diff)
		}
		var recent []string
		for before := int64(0); ; {
			page, err := b.RecentRecords(t.Context(), u, before, 2)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			for _, r := range page {
				before = r.Sequence
				if r.Verb == audit.MemoryCreate {
					recent = slices.Insert(recent, 0, r.Objects...)
				}
			}
		}
		if diff := cmp.Diff(want[u], recent); diff != "" {
			t.Errorf("memories in the recent records of %v (-want +got):\n%s", u, diff)
		}
	}
}

// The application role can neither forge pending records, nor change or delete sealed ones,
// nor write records of another scope.
func TestAuditIsAppendOnly(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, nil)
	alice, bob, other := b.users[0], b.users[1], b.users[2]
	b.remember(t, alice, "note", nil)
	b.auditOf(t, alice.Tenant)
	app := appPool(t, d)
	scoped := func(sql string, args ...any) error {
		tx, err := app.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(t.Context()) }()
		_, err = tx.Exec(t.Context(), "select set_config('mnemo.tenant', $1, true), set_config('mnemo.user', $2, true)", alice.Tenant, fmt.Sprint(alice.User))
		if err != nil {
			t.Fatal(err)
		}
		_, err = tx.Exec(t.Context(), sql, args...)
		return err
	}
	const appended = "select audit_append($1, $2, 'user', '', '', '', 'memory.create', '{}')"
	if err := scoped(appended, alice.Tenant, alice.User); err != nil {
		t.Errorf("append in the own scope: %v", err)
	}
	for name, err := range map[string]error{
		"insert pending": scoped("insert into audit_pending (tenant_id, actor, via, fingerprint, app, verb, objects) values ($1, 'user', '', '', '', 'x', '{}')", alice.Tenant),
		"update pending": scoped("update audit_pending set verb = 'x'"),
		"update sealed":  scoped("update audit_records set verb = 'x'"),
		"delete sealed":  scoped("delete from audit_records"),
		"delete chain":   scoped("delete from audit_chains"),
		"another user":   scoped(appended, bob.Tenant, bob.User),
		"another tenant": scoped(appended, other.Tenant, other.User),
	} {
		if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "42501" {
			t.Errorf("%s: %v, want permission denied", name, err)
		}
	}
}

// Records contain no identifier of a user who was erased, and the chain stays valid.
func TestAuditAfterErasure(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	alice := b.users[0]
	b.remember(t, alice, "note", nil)
	var pseudonym string
	if err := b.owner.QueryRow(t.Context(), "select audit_id from users where id = $1", alice.User).Scan(&pseudonym); err != nil {
		t.Fatal(err)
	}
	spec := b.specs[0]
	spec.DeletionPolicy, spec.Users = tenant.Delete, []tenant.UserSpec{{Name: "bob"}}
	if _, err := b.Apply(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	workJobs(t, b.DB, b.owner)
	if n := b.count(t, "select count(*) from users where id = $1 or audit_id = $2", alice.User, pseudonym); n != 0 {
		t.Error("the pseudonym can still be resolved")
	}
	var hers []string
	for _, r := range b.auditOf(t, alice.Tenant) {
		if r.User == pseudonym {
			hers = append(hers, string(r.Verb))
		}
	}
	want := []string{"user.create", "memory.create", "user.delete", "user.erase"}
	if diff := cmp.Diff(want, hers); diff != "" {
		t.Errorf("records with the pseudonym (-want +got):\n%s", diff)
	}
}

// The log outlives its tenant until its records expire.
func TestAuditAfterTenantDeletion(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id := b.users[0].Tenant
	if _, err := b.Retire(t.Context(), b.specs[0].ID, tenant.Delete); err != nil {
		t.Fatal(err)
	}
	workJobs(t, b.DB, b.owner)
	got := verbs(b.auditOf(t, id))
	if diff := cmp.Diff([]string{"tenant.delete by system", "tenant.erase by system"}, got[len(got)-2:]); diff != "" {
		t.Errorf("last records (-want +got):\n%s", diff)
	}
	b.age(t, "400 days")
	exec(t, b.owner, "update usage_days set day = day - 500")
	if err := b.ExpireRecords(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if n := b.count(t, "select count(*) from audit_chains where tenant_id = $1", id); n != 0 {
		t.Error("the chain still exists")
	}
	ids, err := b.ListTenantIDs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(ids, id) {
		t.Error("the retention job still visits the tenant")
	}
}

// age makes all sealed records older.
func (b *testBundle) age(t testing.TB, by string) {
	t.Helper()
	if _, err := b.owner.Exec(t.Context(), "update audit_records set at = at - $1::interval", by); err != nil {
		t.Fatal(err)
	}
}

// Old records expire from the start of the chain, and the rest stays valid.
func TestAuditExpires(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	alice := b.users[0]
	for i := range 3 {
		b.remember(t, alice, fmt.Sprint("old ", i), nil)
	}
	old := b.auditOf(t, alice.Tenant)
	if err := b.ExpireRecords(t.Context(), alice.Tenant); err != nil {
		t.Fatal(err)
	}
	if got := b.auditOf(t, alice.Tenant); len(got) != len(old) {
		t.Fatalf("%d records are left, want all %d", len(got), len(old))
	}
	// Only the time, which the hash covers: the expired ones are never verified again.
	b.age(t, "366 days")
	b.remember(t, alice, "new", nil)
	if err := b.SealRecords(t.Context(), alice.Tenant, true); err != nil {
		t.Fatal(err)
	}
	if err := b.ExpireRecords(t.Context(), alice.Tenant); err != nil {
		t.Fatal(err)
	}
	got := b.auditOf(t, alice.Tenant)
	if diff := cmp.Diff([]string{"memory.create by system"}, verbs(got)); diff != "" {
		t.Fatalf("records left (-want +got):\n%s", diff)
	}
	if last := old[len(old)-1]; got[0].Previous != last.Hash || got[0].Sequence != last.Sequence+1 {
		t.Errorf("record %d after %s, want %d after %s", got[0].Sequence, got[0].Previous, last.Sequence+1, last.Hash)
	}
}

// appendRecords adds pending records to the log of a tenant.
func (b *testBundle) appendRecords(t *testing.T, id tenant.ID, n int) {
	t.Helper()
	exec(t, b.owner, `insert into audit_pending (tenant_id, actor, via, fingerprint, app, verb, objects)
		select $1, 'system', '', '', '', 'memory.create', '{}' from generate_series(1, $2::int)`, string(id), n)
}

// An export whose client reads slowly contains all records that were sealed when it began, even if they expire or more are sealed
// meanwhile. It delays neither the sealing nor the declaration of a webhook, and has no records of the other tenant.
func TestSlowAuditExport(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id, other := b.users[0].Tenant, b.users[2].Tenant
	const appended = 1500 // beyond what is read at a time
	for _, of := range []tenant.ID{id, other} {
		b.appendRecords(t, of, appended)
		if err := b.SealRecords(t.Context(), of, true); err != nil {
			t.Fatal(err)
		}
	}
	meanwhile := func() {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		b.age(t, "400 days")
		for _, of := range []tenant.ID{id, other} {
			if err := b.ExpireRecords(ctx, of); err != nil {
				t.Errorf("ExpireRecords during an export: %v", err)
			}
			b.appendRecords(t, of, 1)
			if err := b.SealRecords(ctx, of, false); err != nil {
				t.Errorf("SealRecords during an export: %v", err)
			}
		}
		if n := b.count(t, "select count(*) from audit_pending"); n != 0 {
			t.Errorf("%d records are not sealed during an export", n)
		}
		if err := b.DeclareWebhook(ctx, id, declared, hookSecret, 0); err != nil {
			t.Errorf("DeclareWebhook during an export: %v", err)
		}
	}
	err := b.TenantRecords(t.Context(), id, func(head audit.Head, all iter.Seq2[audit.Record, error]) error {
		last := int64(0)
		for r, err := range all {
			if err != nil {
				return err
			}
			if r.Tenant != id || r.Sequence != last+1 {
				return fmt.Errorf("record %d of tenant %s follows record %d", r.Sequence, r.Tenant, last)
			}
			if last = r.Sequence; last == 1 {
				meanwhile()
			}
		}
		if last != head.Sequence || last < appended {
			return fmt.Errorf("the last record is %d, but the head %d", last, head.Sequence)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Sealing waits only briefly for another process that seals the records of the tenant, or for the export of a day, and not for
// those of the other tenant.
func TestSealingDoesNotWaitLong(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"another process is sealing": "select from audit_chains where tenant_id = $1 for update",
		"a day is being closed":      "select pg_advisory_xact_lock(hashtext('mnemo.metering')), $1::uuid",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, nil)
			as := tenant.WithActor(t.Context(), testActor)
			for _, u := range []tenant.Scope{b.users[0], b.users[2]} {
				b.auditOf(t, u.Tenant) // creates the chain
				if _, err := b.Memories().Create(as, u, newMemory("a note")); err != nil {
					t.Fatal(err)
				}
			}
			tx, err := b.owner.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
			if _, err := tx.Exec(t.Context(), sql, string(b.users[0].Tenant)); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if err := b.SealRecords(ctx, b.users[0].Tenant, true); !fault.Is(err, fault.Unavailable) || ctx.Err() != nil {
				t.Fatalf("SealRecords that waits = %v, %v, want Unavailable before the deadline", err, ctx.Err())
			}
			if err := b.SealRecords(ctx, b.users[0].Tenant, false); err != nil {
				t.Errorf("SealRecords that does not wait: %v", err)
			}
			if strings.Contains(sql, "audit_chains") {
				b.auditOf(t, b.users[2].Tenant)
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.auditOf(t, b.users[0].Tenant)
			if n := b.count(t, "select count(*) from audit_pending where tenant_id = $1", string(b.users[0].Tenant)); n != 0 {
				t.Errorf("%d records are not sealed", n)
			}
		})
	}
}

// Every way of tampering with the rows of the log is found when it is exported.
func TestAuditTampering(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ sql, want string }{
		"an edited record":    {"update audit_records set objects = '{other}' where seq = 5", "record 5 was edited"},
		"a dropped record":    {"delete from audit_records where seq = 5", "record 6 follows record 4"},
		"a dropped end":       {"delete from audit_records where seq >= 6", "does not contain record 7"},
		"exchanged records":   {"update audit_records set seq = 11 - seq where seq in (5, 6) and false; update audit_records a set objects = b.objects, at = b.at from audit_records b where a.seq in (5, 6) and b.seq = 11 - a.seq and a.tenant_id = b.tenant_id", "record 5 was edited"},
		"another user's name": {"update audit_records set subject = gen_random_uuid() where seq = 5", "record 5 was edited"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, nil)
			alice := b.users[0]
			for i := range 4 { // after tenant.create and two user.create
				b.remember(t, alice, fmt.Sprint("note ", i), nil)
			}
			if n := len(b.auditOf(t, alice.Tenant)); n != 7 {
				t.Fatalf("%d records, want 7", n)
			}
			if _, err := b.owner.Exec(t.Context(), c.sql); err != nil {
				t.Fatal(err)
			}
			var file bytes.Buffer
			err := audit.Export(t.Context(), b.DB, alice.Tenant, &file)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("export: %v, want %q", err, c.want)
			}
		})
	}
}
