package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/erasure"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
)

// erasable returns an environment with a tenant whose two users have rows and vectors.
func erasable(t *testing.T) (*env, tenant.Tenant) {
	t.Helper()
	e := openEnv(t, postgrestest.Create(t))
	tn := e.apply(t, tenanttest.NewSpec())
	at := e.placement(t, tn.ID)
	if _, err := placement.WaitLoaded(openIndex(t)).Ensure(t.Context(), placement.Placement{Location: at}); err != nil {
		t.Fatal(err)
	}
	for _, u := range tn.Users {
		e.issueToken(t, tn.ID, u.Name, 1)
		text := "a note of " + u.Name
		in := memory.NewMemory{CreateInput: memory.CreateInput{Text: text}, Tokens: 4, Units: retrieve.MemoryUnits(text)}
		for i := range in.Units {
			in.Units[i].Vector, in.Units[i].Generation = make([]float32, defaultGeneration.Dimensions), 1
			in.Units[i].Vector[i] = 1
		}
		if _, err := e.db.Memories().Create(t.Context(), tenant.Scope{Tenant: tn.ID, User: u.ID}, in); err != nil {
			t.Fatal(err)
		}
	}
	e.rebuildIndex(t, tn.ID, len(tn.Users))
	return e, tn
}

// receipt runs an erasure and returns its receipt by store.
func (e *env) receipt(t *testing.T, args ...string) (erasure.Receipt, map[string]erasure.Count) {
	t.Helper()
	var r erasure.Receipt
	if err := json.Unmarshal([]byte(e.mnemo(t, append([]string{"erase", "--yes", "--format", "json"}, args...)...)), &r); err != nil {
		t.Fatal(err)
	}
	byStore := map[string]erasure.Count{}
	for _, c := range r.Stores {
		byStore[c.Store] = c
	}
	return r, byStore
}

func TestEraseUser(t *testing.T) {
	e, tn := erasable(t)
	r, stores := e.receipt(t, "--tenant", string(tn.ID), "--user", "alice")
	if r.Remaining() != 0 || r.User != tn.Users[0].ID {
		t.Errorf("the receipt of user %d has %d remaining objects", r.User, r.Remaining())
	}
	for _, store := range []string{"memories", "memory_versions", "units", "tokens", "users", "audit pseudonym", "vectors", "buckets", "jobs"} {
		c, ok := stores[store]
		if !ok || c.After != 0 || c.Query == "" {
			t.Errorf("%s: %+v, want a query and nothing left", store, c)
		}
		if c.Before == 0 && store != "jobs" {
			t.Errorf("%s: nothing before the erasure", store)
		}
	}
	if !slices.ContainsFunc(r.Kept, func(k erasure.Kept) bool { return k.Store == "removed_users" }) {
		t.Errorf("the receipt does not state that the address of a removed user is kept: %v", r.Kept)
	}
	// Anyone can repeat the queries, and the other user has everything.
	conn, err := pgx.Connect(t.Context(), e.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	for _, c := range r.Stores {
		var n int64
		if c.Store == "vectors" {
			continue
		}
		if err := conn.QueryRow(t.Context(), c.Query).Scan(&n); err != nil || n != 0 {
			t.Errorf("%s returned %d, %v", c.Query, n, err)
		}
	}
	e.expectIndexed(t, tn.ID, len(tn.Users)-1)
	e.expectError(t, "has no user", "erase", "--yes", "--tenant", string(tn.ID), "--user", "alice")
	again, _ := e.receipt(t, "--tenant", string(tn.ID), "--user", fmt.Sprint(tn.Users[0].ID))
	if again.Remaining() != 0 || again.FinishedAt.IsZero() || len(again.Stores) == 0 {
		t.Errorf("the receipt of a repeated erasure is %+v, want that nothing remains", again)
	}
	e.expectError(t, "is named bob", "erase", "--yes", "--tenant", string(tn.ID), "--user", fmt.Sprint(tn.Users[1].ID))
	e.expectIndexed(t, tn.ID, len(tn.Users)-1)
}

// An erasure that fails after it began prints what remains, and how it is repeated.
func TestEraseAfterFailure(t *testing.T) {
	for name, tc := range map[string]struct {
		user  bool
		store string // in which something remains
	}{"user": {true, "memories"}, "tenant": {false, "tenants"}} {
		t.Run(name, func(t *testing.T) {
			e, tn := erasable(t)
			e.exec(t, "create function test_fail() returns trigger language plpgsql as $$ begin raise exception 'cannot delete'; end $$")
			e.exec(t, "create trigger test_fail before delete on memories execute function test_fail()")
			first, again := []string{"--tenant", tn.Namespace + "/" + tn.Name}, []string{"--tenant", string(tn.ID)}
			if tc.user {
				first, again = append(first, "--user", "alice"), append(again, "--user", fmt.Sprint(tn.Users[0].ID))
			} else if _, err := e.db.Retire(t.Context(), tn.ID, tenant.Retain); err != nil {
				t.Fatal(err)
			}
			out, err := e.tryMnemo(t, append([]string{"erase", "--yes", "--format", "json"}, first...)...)
			if err == nil || !strings.Contains(err.Error(), "`mnemo erase "+strings.Join(again, " ")+"`") || !strings.Contains(err.Error(), "cannot delete") {
				t.Errorf("erase: %v, want the cause and how to repeat it", err)
			}
			var r erasure.Receipt
			if err := json.Unmarshal([]byte(out), &r); err != nil {
				t.Fatalf("receipt of the failure: %v in %q", err, out)
			}
			if !r.FinishedAt.IsZero() || !slices.ContainsFunc(r.Stores, func(c erasure.Count) bool { return c.Store == tc.store && c.After > 0 }) {
				t.Errorf("receipt of the failure: %+v, want %s that remain", r, tc.store)
			}
			e.exec(t, "drop trigger test_fail on memories")
			last, stores := e.receipt(t, again...)
			if last.Remaining() != 0 || last.FinishedAt.IsZero() || stores["vectors"].Before == 0 {
				t.Errorf("receipt of the repetition: %+v, want that nothing remains", last)
			}
		})
	}
}

// The vector store may fail after all rows were deleted.
func TestEraseDeletesRemainingVectors(t *testing.T) {
	e, tn := erasable(t)
	scope := tenant.Scope{Tenant: tn.ID, User: tn.Users[0].ID}
	if err := e.db.EraseUser(t.Context(), scope); err != nil {
		t.Fatal(err)
	}
	r, stores := e.receipt(t, "--tenant", string(tn.ID), "--user", fmt.Sprint(scope.User))
	if c := stores["vectors"]; r.Remaining() != 0 || c.Before != 1 || c.After != 0 {
		t.Errorf("receipt of the user: %+v, want a vector before and nothing left", r)
	}
	if _, err := e.db.Retire(t.Context(), tn.ID, tenant.Delete); err != nil {
		t.Fatal(err)
	}
	if _, err := e.db.PurgeRows(t.Context(), tn.ID); err != nil {
		t.Fatal(err)
	}
	r, stores = e.receipt(t, "--tenant", string(tn.ID))
	if c := stores["vectors"]; r.Remaining() != 0 || c.Before != int64(len(tn.Users)-1) || c.After != 0 || stores["tenants"].Before != 1 {
		t.Errorf("receipt of the tenant: %+v, want its record and a vector before and nothing left", r)
	}
}

func TestEraseTenant(t *testing.T) {
	e, tn := erasable(t)
	e.expectError(t, "only retained tenants", "erase", "--yes", "--tenant", string(tn.ID))
	if _, err := e.db.Retire(t.Context(), tn.ID, tenant.Retain); err != nil {
		t.Fatal(err)
	}
	r, stores := e.receipt(t, "--tenant", tn.Namespace+"/"+tn.Name)
	if r.Remaining() != 0 {
		t.Errorf("%d objects remain", r.Remaining())
	}
	for _, store := range []string{"tenants", "quotas", "usage", "placements", "users", "memories", "units", "vectors"} {
		if c := stores[store]; c.Before == 0 || c.After != 0 {
			t.Errorf("%s: %+v, want something before and nothing left", store, c)
		}
	}
	if len(r.Kept) == 0 {
		t.Error("the receipt does not list the retained data")
	}
}

// A table that a later migration adds is found by its columns, and what remains in it fails
// the erasure.
func TestEraseFindsNewTables(t *testing.T) {
	e, tn := erasable(t)
	conn, err := pgx.Connect(t.Context(), e.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	for _, sql := range []string{
		"create table forgotten (tenant_id uuid, user_id bigint)",
		"grant select on forgotten to public",
		"insert into forgotten select tenant_id, id from users",
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	out, err := e.tryMnemo(t, "erase", "--yes", "--tenant", string(tn.ID), "--user", "alice")
	if err == nil || !strings.Contains(err.Error(), "1 objects remain") {
		t.Errorf("erase: %v, want one remaining object", err)
	}
	if !strings.Contains(out, "select count(*) from \"forgotten\" where tenant_id") {
		t.Errorf("the receipt lacks the table:\n%s", out)
	}
}

// An erasure with the address of another Milvus, or after the index was lost, would leave
// the vectors and state that there were none. It is refused before anything is erased.
func TestEraseRefusesOtherMilvus(t *testing.T) {
	e, tn := erasable(t)
	at := e.placement(t, tn.ID)
	if err := openIndex(t).Drop(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	e.expectError(t, "1 vectors, but Milvus has none", "erase", "--yes", "--tenant", string(tn.ID), "--user", "alice")
	e.rebuildIndex(t, tn.ID, len(tn.Users))
	r, stores := e.receipt(t, "--tenant", string(tn.ID), "--user", "alice")
	if r.Remaining() != 0 || stores["memories"].Before != 1 || stores["vectors"].Before != 1 {
		t.Errorf("after the refusal: memories %+v, vectors %+v; want both untouched before", stores["memories"], stores["vectors"])
	}
	if _, err := e.db.Retire(t.Context(), tn.ID, tenant.Retain); err != nil {
		t.Fatal(err)
	}
	if err := openIndex(t).Drop(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	e.expectError(t, "nothing was erased", "erase", "--yes", "--tenant", string(tn.ID))
	records, err := e.db.Records(t.Context(), tenant.RecordsOf{})
	if err != nil {
		t.Fatal(err)
	}
	if len(records) != 1 || records[0].State != tenant.Retained {
		t.Fatalf("after the refusal: %+v, want the retained tenant", records)
	}
	if r, _ := e.receipt(t, "--tenant", string(tn.ID), "--index-lost"); r.Remaining() != 0 {
		t.Errorf("with --index-lost, %d objects remain", r.Remaining())
	}
}
