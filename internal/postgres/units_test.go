package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// usersOf returns the users of a tenant.
func (b *testBundle) usersOf(id tenant.ID) (users []tenant.UserID) {
	for _, u := range b.users {
		if u.Tenant == id {
			users = append(users, u.User)
		}
	}
	return users
}

// liveUnits returns all live units of a tenant, page by page.
func (b *testBundle) liveUnits(t testing.TB, id tenant.ID, page int) []retrieve.UnitID {
	t.Helper()
	var out []retrieve.UnitID
	for after := retrieve.UnitID(0); ; {
		ids, err := b.Live(t.Context(), id, after, page)
		if err != nil {
			t.Fatal(err)
		}
		if len(ids) == 0 {
			return out
		}
		out, after = append(out, ids...), ids[len(ids)-1]
	}
}

func TestUnitsAreLoaded(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	alice, bob := b.users[0], b.users[1]
	text := strings.Repeat("Zoë fährt nach Köln. ", 120)
	memory := b.remember(t, alice, text, nil)
	in := newConversation("a", 0, 3)
	in.Messages[1].Text = strings.Repeat("日本語の文章です。", 100)
	conversation := b.upsert(t, bob, in).Conversation
	b.remember(t, b.users[2], "memory of another tenant", nil)

	var want []indexing.OwnedUnit
	ids := b.unitsOf(t, memory)
	for i, u := range retrieve.MemoryUnits(text) {
		u.ID, u.Owner, u.Lexical, u.Parts = ids[i], memory, "", nil
		want = append(want, indexing.OwnedUnit{User: alice.User, Unit: u, Vectors: map[placement.GenerationID][]float32{}})
	}
	ids = b.unitsOf(t, conversation.ID)
	change := chat.Plan(chat.Conversation{}, nil, in, conversation.ID)
	for i, u := range change.Units()([]int{0, 1, 2}) {
		u.ID, u.Owner, u.Lexical, u.Parts = ids[i], conversation.ID, "", nil
		want = append(want, indexing.OwnedUnit{User: bob.User, Unit: u, Vectors: map[placement.GenerationID][]float32{}})
	}
	if len(want) < 6 {
		t.Fatalf("%d units, want several of each long text", len(want))
	}
	all := append(b.liveUnits(t, b.users[2].Tenant, 10), b.liveUnits(t, alice.Tenant, 2)...)
	got, err := b.Load(t.Context(), alice.Tenant, append(all, 1<<50))
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got, func(a, b indexing.OwnedUnit) int { return int(a.ID - b.ID) })
	for i := range want { // the default bucket's id is not known beforehand
		if want[i].Kind == retrieve.Memory {
			want[i].Group = got[0].Group
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Load (-want +got):\n%s", diff)
	}
}

func TestInactiveUnitsAreNotReturned(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Conversations = 1 })
	scope := b.users[0]
	deleted := b.unitsOf(t, b.remember(t, scope, "deleted", nil))
	b.upsert(t, scope, newConversation("a", 0, 2))
	blocked := b.unitsOf(t, b.upsert(t, scope, newConversation("b", 1, 2)).Conversation.ID)
	kept := b.unitsOf(t, b.remember(t, scope, "kept", nil))
	if _, err := b.Memories().Delete(t.Context(), scope, []string{b.ownerOf(t, deleted[0])}); err != nil {
		t.Fatal(err)
	}
	got, err := b.Load(t.Context(), scope.Tenant, slices.Concat(deleted, blocked, kept))
	if err != nil {
		t.Fatal(err)
	}
	var loaded []retrieve.UnitID
	for _, u := range got {
		loaded = append(loaded, u.ID)
	}
	if diff := cmp.Diff(kept, loaded); diff != "" {
		t.Errorf("Load (-want +got):\n%s", diff)
	}
	for _, kind := range []retrieve.Kind{retrieve.Memory, retrieve.Chat} {
		q := retrieve.Request{Kind: kind, Limit: 10}
		found, err := b.Resolve(t.Context(), scope, q, slices.Concat(deleted, blocked))
		if err != nil || len(found) != 0 {
			t.Errorf("Resolve = %v, %v, want nothing", found, err)
		}
	}
	live := b.liveUnits(t, scope.Tenant, 2)
	if len(live) != 3 {
		t.Errorf("Live = %v, want 3 units", live)
	}
	if slices.Contains(live, blocked[0]) {
		t.Errorf("Live = %v, want no unit of the blocked conversation", live)
	}
}

func (b *testBundle) ownerOf(t testing.TB, id retrieve.UnitID) (owner string) {
	t.Helper()
	err := b.owner.QueryRow(t.Context(), "select coalesce(memory_id, conversation_id)::text from units where id = $1", id).Scan(&owner)
	if err != nil {
		t.Fatal(err)
	}
	return owner
}

func TestVectorsAreSavedAndScored(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	ctx, alice := t.Context(), b.users[0]
	r := rand.New(rand.NewPCG(1, 2))
	vectors := map[retrieve.UnitID][]float32{}
	for i, u := range b.users {
		id := b.unitsOf(t, b.remember(t, u, fmt.Sprint("memory ", i), nil))[0]
		vectors[id] = randomUnit(r)
	}
	if err := b.SaveVectors(ctx, alice.Tenant, b.usersOf(alice.Tenant), 0, withVectors(vectors), nil); err != nil {
		t.Fatal(err)
	}
	var ids []retrieve.UnitID
	for id := range vectors {
		ids = append(ids, id)
	}
	got, err := b.Load(ctx, alice.Tenant, ids)
	if err != nil || len(got) != 2 {
		t.Fatalf("Load = %v, %v", got, err)
	}
	for _, u := range got {
		if c := cosine(u.Vectors[0], vectors[u.ID]); c < 0.999 || c > 1.001 {
			t.Errorf("cosine of the stored and the saved vector = %v, want 1", c)
		}
	}
	// An existing vector is not replaced.
	if err := b.SaveVectors(ctx, alice.Tenant, []tenant.UserID{alice.User}, 0, withVectors(map[retrieve.UnitID][]float32{got[0].ID: randomUnit(r)}), nil); err != nil {
		t.Fatal(err)
	}
	query := randomUnit(r)
	hits, err := b.Score(ctx, alice, 0, ids, query)
	if err != nil {
		t.Fatal(err)
	}
	if len(hits) != 1 {
		t.Fatalf("cosines of %v, want one", hits)
	}
	if d := hits[0].Score - cosine(query, vectors[hits[0].ID]); d > 1e-3 || d < -1e-3 {
		t.Errorf("score differs from the cosine by %v", d)
	}
	if n := b.count(t, "select count(*) from units where tenant_id = $1 and embedding is not null", b.users[2].Tenant); n != 0 {
		t.Error("vectors were saved for another tenant's units")
	}
}

// Vectors that are in no index are confirmed when they are saved, which spares another write of the row. Those of an index are
// confirmed by the job after it wrote them there.
func TestSaveVectorsConfirmsUnindexedUnits(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		prepare   func(b *testBundle) error
		confirmed int // of two units
	}{
		"no placement yet": {prepare: func(*testBundle) error { return nil }},
		"in no index": {confirmed: 2, prepare: func(b *testBundle) error {
			_, err := b.EnsurePlacement(t.Context(), b.users[0].Tenant)
			return err
		}},
		"an inactive unit": {confirmed: 1, prepare: func(b *testBundle) error {
			exec(t, b.owner, "update units set active = false where id = (select max(id) from units)")
			_, err := b.EnsurePlacement(t.Context(), b.users[0].Tenant)
			return err
		}},
		"leaves for an index": {prepare: func(b *testBundle) error {
			if _, err := b.EnsurePlacement(t.Context(), b.users[0].Tenant); err != nil {
				return err
			}
			exec(t, b.owner, "update tenants set outgrown_at = now() where id = $1", b.users[0].Tenant)
			_, err := b.ReconcilePlacement(t.Context(), b.users[0].Tenant)
			return err
		}},
		"in an index": {prepare: func(b *testBundle) error {
			exec(t, b.owner, "update tenants set outgrown_at = now() where id = $1", b.users[0].Tenant)
			_, err := b.EnsurePlacement(t.Context(), b.users[0].Tenant)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupIn(t, postgrestest.CreateOnDemand(t), nil)
			alice := b.users[0]
			vectors := map[retrieve.UnitID][]float32{}
			for _, text := range []string{"The boiler was serviced.", "The tax return was sent."} {
				vectors[b.unitsOf(t, b.remember(t, alice, text, nil))[0]] = randomUnit(rand.New(rand.NewPCG(1, 2)))
			}
			if err := test.prepare(b); err != nil {
				t.Fatal(err)
			}
			state, err := b.GetPlacement(t.Context(), alice.Tenant)
			if err != nil && !fault.Is(err, fault.NotFound) {
				t.Fatal(err)
			}
			if err := b.SaveVectors(t.Context(), alice.Tenant, []tenant.UserID{alice.User}, state.Generation, withVectors(vectors), nil); err != nil {
				t.Fatal(err)
			}
			if n := b.count(t, "select count(*) from units where embedding is not null"); n != 2 {
				t.Errorf("%d units have a vector, want 2", n)
			}
			if n := b.count(t, "select count(*) from units where indexed_at is not null"); n != test.confirmed {
				t.Errorf("%d units are confirmed, want %d", n, test.confirmed)
			}
		})
	}
}

// Units are confirmed together with their vectors, each row in one write, except those that are not live. A unit that has a vector
// is confirmed, too.
func TestSaveVectorsConfirms(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	ctx, alice := t.Context(), b.users[0]
	r := rand.New(rand.NewPCG(1, 2))
	vectors := map[retrieve.UnitID][]float32{}
	var ids []retrieve.UnitID
	for i := range 4 {
		id := b.unitsOf(t, b.remember(t, alice, fmt.Sprint("memory ", i), nil))[0]
		ids, vectors[id] = append(ids, id), randomUnit(r)
	}
	withVector, changed, inactive := ids[0], ids[1], ids[2]
	if err := b.SaveVectors(ctx, alice.Tenant, []tenant.UserID{alice.User}, 0, withVectors(map[retrieve.UnitID][]float32{withVector: vectors[withVector]}), nil); err != nil {
		t.Fatal(err)
	}
	exec(t, b.owner, "update units set active = false where id = $1", inactive)
	exec(t, b.owner, "create table writes (id bigint)")
	exec(t, b.owner, `create function log_write() returns trigger language plpgsql security definer as $$
		begin insert into writes values (new.id); return null; end $$`)
	exec(t, b.owner, "create trigger log_write after update on units for each row execute function log_write()")
	if err := b.SaveVectors(ctx, alice.Tenant, []tenant.UserID{alice.User}, 0, withVectors(vectors), []retrieve.UnitID{withVector, inactive, ids[3]}); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[retrieve.UnitID]bool{withVector: true, changed: false, inactive: false, ids[3]: true} {
		if got := b.count(t, "select count(*) from units where id = $1 and indexed_at is not null", id) == 1; got != want {
			t.Errorf("unit %d of %v is confirmed: %t, want %t", id, ids, got, want)
		}
	}
	if n := b.count(t, "select count(*) from units where embedding is not null"); n != 4 {
		t.Errorf("%d units have a vector, want 4", n)
	}
	if rows, n := b.count(t, "select count(distinct id) from writes"), b.count(t, "select count(*) from writes"); rows != 4 || n != 4 {
		t.Errorf("%d rows were written %d times, want 4 rows, each once", rows, n)
	}
}

func TestConfirm(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	ctx := t.Context()
	var ids []retrieve.UnitID
	for _, u := range b.users {
		ids = append(ids, b.unitsOf(t, b.remember(t, u, "text", nil))...)
	}
	if err := b.Confirm(ctx, b.users[0].Tenant, []tenant.UserID{b.users[0].User}, ids[1:]); err != nil {
		t.Fatal(err)
	}
	if n := b.count(t, "select count(*) from units where indexed_at is not null"); n != 0 {
		t.Errorf("%d units of users that were not named are confirmed", n)
	}
	if err := b.Confirm(ctx, b.users[0].Tenant, b.usersOf(b.users[0].Tenant), ids[:3]); err != nil {
		t.Fatal(err)
	}
	if n := b.count(t, "select count(*) from units where indexed_at > now() - interval '1 minute'"); n != 2 {
		t.Errorf("%d units are confirmed, want 2 of the tenant", n)
	}
	expectConfirmed(t, b, b.users[0].Tenant, ids, 0) // a job may have just written them
	for i, want := range map[int][]retrieve.UnitID{0: nil, 2: ids[2:], 3: ids[2:]} {
		got, err := b.Unconfirmed(ctx, b.users[i].Tenant, 0, 10)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("Unconfirmed of the tenant of user %d = %v, %v, want %v", i, got, err, want)
		}
	}
	exec(t, b.owner, "update units set indexed_at = '2020-01-01' where indexed_at is not null")
	if err := b.Confirm(ctx, b.users[0].Tenant, b.usersOf(b.users[0].Tenant), ids); err != nil {
		t.Fatal(err)
	}
	if n := b.count(t, "select count(*) from units where indexed_at = '2020-01-01'"); n != 2 {
		t.Errorf("%d units kept their time of confirmation, want 2", n)
	}
	expectConfirmed(t, b, b.users[0].Tenant, ids, 2)
	expectConfirmed(t, b, b.users[2].Tenant, ids, 0)
}

func expectConfirmed(t *testing.T, b *testBundle, id tenant.ID, units []retrieve.UnitID, want int) {
	t.Helper()
	got, err := b.CountConfirmed(t.Context(), id, units)
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("tenant %s has %d units confirmed before, want %d", id, got, want)
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	ctx, alice := t.Context(), b.users[0]
	var all []retrieve.UnitID
	owners := map[retrieve.UnitID]string{}
	for i, u := range b.users {
		for _, owner := range []string{b.remember(t, u, fmt.Sprint("memory ", i), nil), b.upsert(t, u, newConversation("a", i, 1)).Conversation.ID} {
			id := b.unitsOf(t, owner)[0]
			owners[id] = owner
			all = append(all, id)
		}
	}
	exec(t, b.owner, "update memories set created_at = $1", start)
	group := func(id retrieve.UnitID) (g int64) {
		units, err := b.Load(ctx, alice.Tenant, []retrieve.UnitID{id})
		if err != nil || len(units) != 1 {
			t.Fatalf("Load = %v, %v", units, err)
		}
		return units[0].Group
	}
	ends := []int{len("memory 0"), len("a says number 0")}
	times := []time.Time{{}, start} // memories have no message time
	for i, kind := range []retrieve.Kind{retrieve.Memory, retrieve.Chat} {
		mine := all[i]
		for name, test := range map[string]struct {
			query retrieve.Request
			want  bool
		}{
			"all":         {retrieve.Request{}, true},
			"group":       {retrieve.Request{Group: group(mine)}, true},
			"other group": {retrieve.Request{Group: 1 << 62}, false},
			"from":        {retrieve.Request{From: start}, true},
			"from later":  {retrieve.Request{From: start.Add(1e6)}, false},
			"to":          {retrieve.Request{To: start.Add(1e6)}, true},
			"to earlier":  {retrieve.Request{To: start}, false},
			"after":       {retrieve.Request{After: start}, true},
			"before":      {retrieve.Request{Before: start.Add(1e6)}, true},
			"after later": {retrieve.Request{After: start.Add(1e6)}, kind == retrieve.Memory},
			"before then": {retrieve.Request{Before: start}, kind == retrieve.Memory},
		} {
			test.query.Kind = kind
			found, err := b.Resolve(ctx, alice, test.query, append(all, 1<<50))
			if err != nil {
				t.Fatal(err)
			}
			want := []retrieve.Found{}
			if test.want {
				want = append(want, retrieve.Found{ID: mine, Owner: owners[mine], End: ends[i], At: times[i]})
			}
			if diff := cmp.Diff(want, found); diff != "" {
				t.Errorf("%s of kind %d (-want +got):\n%s", name, kind, diff)
			}
			if kind == retrieve.Chat {
				b.checkDescribed(t, alice, test.query, append(all, 1<<50), want)
			}
		}
	}
}

// checkDescribed checks that Describe returns the same units as Resolve.
func (b *testBundle) checkDescribed(t *testing.T, scope tenant.Scope, q retrieve.Request, ids []retrieve.UnitID, want []retrieve.Found) {
	t.Helper()
	list, err := b.Describe(t.Context(), scope, q, ids)
	if err != nil {
		t.Fatal(err)
	}
	got := []retrieve.Found{}
	for _, d := range list {
		got = append(got, retrieve.Found{ID: d.ID, Owner: d.Owner, Seq: d.Seq, Start: d.Start, End: d.End, At: d.At})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Describe of %+v (-want +got):\n%s", q, diff)
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	ids := map[int][]retrieve.UnitID{} // of each user's conversation
	for i, u := range b.users {
		ids[i] = b.unitsOf(t, b.upsert(t, u, newConversation("a", 0, 4)).Conversation.ID)
	}
	vectors := map[retrieve.UnitID][]float32{ids[0][0]: {1, 0}}
	if err := b.SaveVectors(t.Context(), b.users[0].Tenant, []tenant.UserID{b.users[0].User}, 0, withVectors(vectors), nil); err != nil {
		t.Fatal(err)
	}
	wanted := append([]retrieve.UnitID{ids[0][1]}, slices.Concat(ids[1], ids[2])...)
	got, err := b.Describe(t.Context(), b.users[0], retrieve.Request{Kind: retrieve.Chat}, append(wanted, 1<<50))
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got, func(a, b retrieve.Described) int { return int(a.ID - b.ID) })
	owner := b.ownerOf(t, ids[0][1])
	want := []retrieve.Described{
		{ID: ids[0][0], Owner: owner, Seq: 0, Vector: []float32{1, 0}},
		{ID: ids[0][1], Owner: owner, Seq: 1, End: 15, Text: "a says number 1"},
		{ID: ids[0][2], Owner: owner, Seq: 2},
	}
	for i := range got {
		if got[i].Text != "" && got[i].At.IsZero() {
			t.Errorf("unit %d has no time", got[i].ID)
		}
		got[i].At, got[i].Human = time.Time{}, false
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Describe (-want +got):\n%s", diff)
	}
}
