package postgres_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Of a long message, a candidate is described with the units nearest to it: the last ones of the message before and the first ones of the message after.
func TestDescribeLimitsNeighbors(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	const nearest = 8
	units := map[tenant.UserID]map[int][]retrieve.UnitID{} // of each message
	for _, scope := range b.users {
		c := newConversation("a", 0, 5)
		for _, i := range []int{1, 3} {
			c.Messages[i].Text = strings.Repeat("A line of a pasted log with a few words.\n", 600)
		}
		of := map[int][]retrieve.UnitID{}
		b.upsert(t, scope, c)
		rows, err := b.owner.Query(t.Context(), "select seq, array_agg(id order by span_start) from units where user_id = $1 group by seq", scope.User)
		if err != nil {
			t.Fatal(err)
		}
		var seq int
		var list []retrieve.UnitID
		if _, err := pgx.ForEachRow(rows, []any{&seq, &list}, func() error { of[seq], list = list, nil; return nil }); err != nil {
			t.Fatal(err)
		}
		if len(of[1]) < 3*nearest {
			t.Fatalf("the long message has %d units, want at least %d", len(of[1]), 3*nearest)
		}
		units[scope.User] = of
	}
	scope := b.users[0]
	of := units[scope.User]
	first := func(list []retrieve.UnitID) []retrieve.UnitID { return list[:nearest] }
	last := func(list []retrieve.UnitID) []retrieve.UnitID { return list[len(list)-nearest:] }
	for name, test := range map[string]struct{ candidates, neighbors []retrieve.UnitID }{
		"between long messages":      {of[2], slices.Concat(last(of[1]), first(of[3]))},
		"on both sides of one":       {slices.Concat(of[0], of[2]), slices.Concat(first(of[1]), last(of[1]), first(of[3]))},
		"in a long message":          {of[1][:1], slices.Concat(of[0], of[2])},
		"in the two nearest of both": {slices.Concat(of[1][len(of[1])-1:], of[2]), slices.Concat(of[0], of[1][len(of[1])-1-nearest:len(of[1])-1], first(of[3]))},
		"of another user":            {units[b.users[1].User][2], nil},
	} {
		described, err := b.Describe(t.Context(), scope, retrieve.Request{Kind: retrieve.Chat}, test.candidates)
		if err != nil {
			t.Fatal(err)
		}
		var got, want []retrieve.UnitID
		for _, d := range described {
			got = append(got, d.ID)
		}
		if name != "of another user" {
			want = slices.Concat(test.candidates, test.neighbors)
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("a candidate %s (-want +got):\n%s", name, diff)
		}
	}
}

// Memories are described with the name of their bucket, unless it is the default one, and with whether newer ones replace them.
func TestDescribeMemories(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	bucket := b.createBucket(t, scope, "Recipes")
	other := b.createBucket(t, b.users[1], "Travel")
	older := b.remember(t, scope, "Carbonara with cream", nil)
	m := newMemory("Carbonara without cream")
	m.Bucket, m.Links = bucket, memory.Links{Supersedes: []string{older}}
	newer, err := b.Memories().Create(t.Context(), scope, m)
	if err != nil {
		t.Fatal(err)
	}
	m = newMemory("Lisbon")
	m.Bucket = other
	if _, err := b.Memories().Create(t.Context(), b.users[1], m); err != nil {
		t.Fatal(err)
	}
	q := retrieve.Request{Kind: retrieve.Memory}
	described, err := b.Describe(t.Context(), scope, q, b.liveUnits(t, scope.Tenant, 10))
	if err != nil {
		t.Fatal(err)
	}
	found, err := b.Resolve(t.Context(), scope, q, b.liveUnits(t, scope.Tenant, 10))
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		Heading    string
		Superseded bool
	}
	got := map[string]row{}
	for _, d := range described {
		got[d.Owner] = row{d.Heading, d.Superseded}
	}
	if diff := cmp.Diff(map[string]row{older: {"", true}, newer.ID: {"Recipes", false}}, got); diff != "" {
		t.Errorf("Describe (-want +got):\n%s", diff)
	}
	if len(found) != 2 || found[0].Superseded != (found[0].Owner == older) || found[1].Superseded != (found[1].Owner == older) {
		t.Errorf("Resolve = %+v, want only %s superseded", found, older)
	}
}
