package postgres_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.opentelemetry.io/otel/trace"

	"github.com/mnemo-dev/mnemo/internal/filter"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Other writers of the tenant wait for the last one of a creation and of storing vectors, and for all of a deletion. Each index
// job stores vectors and confirms units.
func TestMemoryRoundTrips(t *testing.T) {
	t.Parallel()
	proxy, d := newFlakyConn(t, postgrestest.Create(t))
	b := setupIn(t, d, nil)
	var id, kept string
	vector := randomUnit(rand.New(rand.NewPCG(1, 1)))
	create := func() { id = b.remember(t, b.users[0], uuid.NewString(), nil) }
	var prepared memory.NewMemory
	prepare := func() { prepared = b.prepare(t, newMemory(uuid.NewString())) }
	createPrepared := func() {
		created, err := b.Memories().Create(t.Context(), b.users[0], prepared)
		if err != nil {
			t.Fatal(err)
		}
		id = created.ID
	}
	embed := func() {
		if err := b.SaveVectors(t.Context(), b.users[0].Tenant, []tenant.UserID{b.users[0].User}, 0, withVectors(map[retrieve.UnitID][]float32{retrieve.UnitID(1): vector}), nil); err != nil {
			t.Fatal(err)
		}
	}
	remove := func() {
		if _, err := b.Memories().Delete(t.Context(), b.users[0], []string{id}); err != nil {
			t.Fatal(err)
		}
	}
	undoable := func() {
		if _, err := b.Memories().DeleteUndoable(t.Context(), b.users[0], []string{id}); err != nil {
			t.Fatal(err)
		}
	}
	merge := func() {
		if _, err := b.Memories().Merge(t.Context(), b.users[0], memory.MergeInput{Kept: kept, IDs: []string{id}}); err != nil {
			t.Fatal(err)
		}
	}
	confirm := func() {
		if err := b.Confirm(t.Context(), b.users[0].Tenant, []tenant.UserID{b.users[0].User}, []retrieve.UnitID{1}); err != nil {
			t.Fatal(err)
		}
	}
	kept = b.remember(t, b.users[0], "kept", nil)
	for range 3 { // creates the bucket, and prepares the statements
		prepare()
		createPrepared()
		embed()
		confirm()
		remove()
		create()
		undoable()
		create()
		merge()
	}
	for _, step := range []struct {
		name string
		do   func()
		want int64
	}{
		{"preparation", prepare, 1}, {"creation after it", createPrepared, 1}, {"vectors", embed, 2}, {"confirmation", confirm, 1}, {"deletion", remove, 2},
		{"creation", create, 2}, {"deletion that can be undone", undoable, 3},
		{"creation", create, 2}, {"merge", merge, 6}, // one of them reads its depth
	} {
		before := proxy.roundTrips.Load()
		step.do()
		if n := proxy.roundTrips.Load() - before; n != step.want {
			t.Errorf("%s: %d round trips, want %d", step.name, n, step.want)
		}
	}
}

// Other writers of the tenant wait for all of them.
func TestConversationRoundTrips(t *testing.T) {
	t.Parallel()
	proxy, d := newFlakyConn(t, postgrestest.Create(t))
	b := setupIn(t, d, nil)
	conversation := newConversation("", 0, 3)
	create := func() {
		conversation.ExternalID = uuid.NewString()
		b.upsert(t, b.users[0], conversation)
	}
	grow := func() {
		longer := newConversation(conversation.ExternalID, 0, 5)
		b.upsert(t, b.users[0], longer)
	}
	for range 3 { // prepares the statements
		create()
		grow()
	}
	for _, step := range []struct {
		name string
		do   func()
		want int64
	}{{"new conversation", create, 6}, {"new messages", grow, 6}, {"no change", grow, 4}} {
		before := proxy.roundTrips.Load()
		step.do()
		if n := proxy.roundTrips.Load() - before; n != step.want {
			t.Errorf("%s: %d round trips, want %d", step.name, n, step.want)
		}
	}
}

// TestJobsAreSentWithTheMemory: a creation whose index job cannot be inserted fails and stores nothing, and the job is part of the creation's trace.
func TestJobsAreSentWithTheMemory(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	ctx := trace.ContextWithSpanContext(t.Context(), span)
	if _, err := b.Memories().Create(ctx, b.users[0], newMemory("traced")); err != nil {
		t.Fatal(err)
	}
	var parent string
	if err := b.owner.QueryRow(ctx, "select metadata ->> 'traceparent' from river_job where kind = 'index.sync'").Scan(&parent); err != nil || !strings.Contains(parent, span.TraceID().String()) {
		t.Errorf("the job has the trace %q, %v, want %s", parent, err, span.TraceID())
	}
	exec(t, b.owner, "alter table river_job add constraint refused check (kind <> 'index.sync') not valid")
	if _, err := b.Memories().Create(ctx, b.users[0], newMemory("refused")); err == nil {
		t.Error("the memory was stored without its job")
	}
	if n, err := b.Memories().Count(ctx, b.users[0], filter.Filter{}); n != 1 || err != nil {
		t.Errorf("%d memories, %v, want one", n, err)
	}
}

func TestDeferredStatements(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	bucket := db.EnsureDefaultBucketParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), Name: "General", NameKey: "general"}
	foreign := bucket
	foreign.UserID = int64(b.users[1].User)
	count := func() (n int) {
		t.Helper()
		if err := b.owner.QueryRow(t.Context(), "select count(*) from buckets").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	refused := errors.New("refused")
	tests := map[string]struct {
		reason string
		do     func(tx pgx.Tx, q *db.Queries) error
		code   string // of the error
		err    error
	}{
		"nothing": {"no transaction begins", func(pgx.Tx, *db.Queries) error { return refused }, "", refused},
		"rollback": {"an error rolls back what was sent", func(tx pgx.Tx, q *db.Queries) error {
			q.Later().EnsureDefaultBucket(bucket)
			_, err := tx.Exec(t.Context(), "select 1")
			return errors.Join(err, refused)
		}, "", refused},
		"commit": {"the commit returns the error of a deferred statement", func(_ pgx.Tx, q *db.Queries) error {
			q.Later().EnsureDefaultBucket(bucket)
			q.Later().EnsureDefaultBucket(foreign)
			return nil
		}, "42501", nil},
		"query": {"the next query returns the error of a deferred statement", func(_ pgx.Tx, q *db.Queries) error {
			q.Later().EnsureDefaultBucket(foreign)
			_, err := q.LockUsage(t.Context(), bucket.TenantID)
			return errors.Join(err, refused)
		}, "42501", refused},
		"failed query": {"the next statements fail", func(tx pgx.Tx, q *db.Queries) error {
			if _, err := tx.Exec(t.Context(), "select 1 / (count(*) - count(*)) from buckets"); err == nil {
				t.Error("no error of a division by zero")
			}
			q.Later().EnsureDefaultBucket(bucket)
			return nil
		}, "25P02", nil},
		"ignored error": {"a commit is not successful after an error that was ignored", func(tx pgx.Tx, _ *db.Queries) error {
			if _, err := tx.Exec(t.Context(), "select 1 / (count(*) - count(*)) from buckets"); err == nil {
				t.Error("no error of a division by zero")
			}
			return nil
		}, "", pgx.ErrTxCommitRollback},
	}
	for name, test := range tests {
		err := postgres.InScope(b.DB, t.Context(), scope, test.do)
		if e, ok := errors.AsType[*pgconn.PgError](err); ok != (test.code != "") || ok && e.Code != test.code {
			t.Errorf("%s (%s): %v, want code %q", name, test.reason, err, test.code)
		}
		if test.err != nil && !errors.Is(err, test.err) {
			t.Errorf("%s (%s): %v, want %v", name, test.reason, err, test.err)
		}
		if n := count(); n != 0 {
			t.Errorf("%s (%s): %d buckets, want none", name, test.reason, n)
		}
	}
	err := postgres.InScope(b.DB, t.Context(), scope, func(_ pgx.Tx, q *db.Queries) error {
		q.Later().EnsureDefaultBucket(bucket)
		return nil
	})
	if n := count(); err != nil || n != 1 {
		t.Errorf("%d buckets, %v, want one", n, err)
	}
}
