package postgres_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/filter"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// superseding stores a memory with links.
func (b *testBundle) superseding(t *testing.T, scope tenant.Scope, text string, links memory.Links) string {
	t.Helper()
	m := newMemory(text)
	m.Links = links
	created, err := b.Memories().Create(t.Context(), scope, m)
	if err != nil {
		t.Fatal(err)
	}
	return created.ID
}

// newer returns what supersedes a memory before a time.
func (b *testBundle) newer(t *testing.T, scope tenant.Scope, id string, bucket int64, asOf time.Time) string {
	t.Helper()
	got, err := b.Memories().Newer(t.Context(), scope, []string{id, "not-an-id"}, memory.Filter{Bucket: bucket, AsOf: asOf})
	if err != nil {
		t.Fatal(err)
	}
	return got[id]
}

func TestSupersededMemories(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	old, foreign, neighbor := b.remember(t, scope, "lives in Berlin", nil), b.remember(t, b.users[1], "a", nil), b.remember(t, b.users[2], "b", nil)
	updated := b.superseding(t, scope, "lives in Munich", memory.Links{Supersedes: []string{old, foreign, neighbor, "x"}})
	backdated := b.superseding(t, scope, "lives in Bonn", memory.Links{SupersededBy: updated})
	b.superseding(t, scope, "lives on Mars", memory.Links{SupersededBy: foreign})
	for reason, tc := range map[string]struct{ got, want string }{
		"the older memory names the newer one":   {b.get(t, scope, old).SupersededBy, updated},
		"the newer memory is current":            {b.get(t, scope, updated).SupersededBy, ""},
		"a statement of an earlier date":         {b.get(t, scope, backdated).SupersededBy, updated},
		"another user's memory is not linked":    {b.get(t, b.users[1], foreign).SupersededBy, ""},
		"another tenant's memory is not linked":  {b.get(t, b.users[2], neighbor).SupersededBy, ""},
		"Newer":                                  {b.newer(t, scope, old, 0, time.Time{}), updated},
		"Newer in the bucket":                    {b.newer(t, scope, old, b.get(t, scope, old).BucketID, time.Time{}), updated},
		"Newer in another bucket":                {b.newer(t, scope, old, b.createBucket(t, scope, "Work"), time.Time{}), ""},
		"Newer before it was known":              {b.newer(t, scope, old, 0, b.get(t, scope, updated).CreatedAt), ""},
		"Newer of another user":                  {b.newer(t, b.users[1], old, 0, time.Time{}), ""},
		"the first of two newer memories counts": {b.supersededAgain(t, scope, old), updated},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %q, want %q", reason, tc.got, tc.want)
		}
	}
	if diff := cmp.Diff([]string{old, backdated}, b.get(t, scope, updated).Supersedes); diff != "" {
		t.Errorf("superseded memories (-want +got):\n%s", diff)
	}
}

// supersededAgain stores another memory that supersedes the same one.
func (b *testBundle) supersededAgain(t *testing.T, scope tenant.Scope, old string) string {
	t.Helper()
	b.superseding(t, scope, "lives in Ulm", memory.Links{Supersedes: []string{old}})
	return b.get(t, scope, old).SupersededBy
}

// An edit replaces the links of the old text, and a deletion makes the older memory current.
func TestLinksOfEditedAndDeletedMemories(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	first, second := b.remember(t, scope, "lives in Berlin", nil), b.remember(t, scope, "works at Acme", nil)
	newest := b.superseding(t, scope, "lives in Munich", memory.Links{Supersedes: []string{first}})
	e := edit(newest, "works at Globex")
	e.Links = memory.Links{Supersedes: []string{second}}
	if _, err := b.Memories().Update(t.Context(), scope, e); err != nil {
		t.Fatal(err)
	}
	if got := b.get(t, scope, first).SupersededBy; got != "" {
		t.Errorf("after the edit the first memory is superseded by %s", got)
	}
	if got := b.get(t, scope, second).SupersededBy; got != newest {
		t.Errorf("after the edit the second memory is superseded by %q, want %s", got, newest)
	}
	if _, err := b.Memories().Delete(t.Context(), scope, []string{newest}); err != nil {
		t.Fatal(err)
	}
	if got := b.get(t, scope, second).SupersededBy; got != "" {
		t.Errorf("after the deletion the second memory is superseded by %s", got)
	}
}

// asOf shows the memories, texts and links of then.
func TestMemoriesAsOf(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	id := b.remember(t, scope, "lives in Berlin", nil)
	stored := b.get(t, scope, id).CreatedAt.Add(time.Microsecond)
	if _, err := b.Memories().Update(t.Context(), scope, edit(id, "lives in Potsdam")); err != nil {
		t.Fatal(err)
	}
	edited := b.get(t, scope, id).UpdatedAt.Add(time.Microsecond)
	updated := b.superseding(t, scope, "lives in Munich", memory.Links{Supersedes: []string{id}})
	type known struct {
		Texts        []string
		Version      int
		SupersededBy string
	}
	for reason, tc := range map[string]struct {
		at   time.Time
		want known
	}{
		"before it was stored": {stored.Add(-time.Second), known{}},
		"after it was stored":  {stored, known{[]string{"lives in Berlin"}, 1, ""}},
		"after the edit":       {edited, known{[]string{"lives in Potsdam"}, 2, ""}},
		"in the future":        {edited.Add(time.Hour), known{[]string{"lives in Potsdam", "lives in Munich"}, 2, updated}},
		"now":                  {time.Time{}, known{[]string{"lives in Potsdam", "lives in Munich"}, 2, updated}},
	} {
		list, _, err := b.Memories().List(t.Context(), scope, memory.Filter{Limit: 9, AsOf: tc.at})
		if err != nil {
			t.Fatal(err)
		}
		var got known
		for i, m := range list {
			got.Texts = append(got.Texts, m.Text)
			if i == 0 {
				got.Version, got.SupersededBy = m.Version, m.SupersededBy
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
		byID, err := b.Memories().ByID(t.Context(), scope, []string{id}, tc.at)
		if err != nil || len(byID) != min(1, len(tc.want.Texts)) {
			t.Errorf("%s: ByID returns %d memories, %v", reason, len(byID), err)
		}
	}
}

// A memory that does not match the filter of a search is not added to its result, although
// it supersedes one that does.
func TestNewerMemoriesMatchTheFilter(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	old := b.remember(t, scope, "lives in Berlin", nil)
	m := newMemory("lives in Munich")
	m.Links, m.AgentID = memory.Links{Supersedes: []string{old}}, "planner"
	created, err := b.Memories().Create(t.Context(), scope, m)
	if err != nil {
		t.Fatal(err)
	}
	for agent, want := range map[string]string{"planner": created.ID, "other": ""} {
		where := filter.Filter{Op: filter.Eq, Field: filter.AgentID, Values: []filter.Value{{Kind: filter.String, Text: agent}}}
		got, err := b.Memories().Newer(t.Context(), scope, []string{old}, memory.Filter{Where: where})
		if err != nil || got[old] != want {
			t.Errorf("Newer for the agent %s = %v, %v, want %q", agent, got, err, want)
		}
	}
}

// A retry reports the near-duplicates that the first request found, as far as they still exist, with their current texts.
func TestSimilarMemoriesOfARetry(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	kept, deleted, others := b.remember(t, scope, "Lives in Munich", nil), b.remember(t, scope, "Lives in Munich.", nil), b.remember(t, b.users[1], "Munich", nil)
	m := newMemory("lives in Munich")
	m.Request = request("memory", "k", "body")
	m.Similar = []memory.SimilarMemory{{ID: deleted, Text: "Lives in Munich.", Score: 0.9}, {ID: kept, Text: "Lives in Munich", Score: 0.8}, {ID: others, Text: "x", Score: 0.7}}
	create := func() []memory.SimilarMemory {
		t.Helper()
		created, err := b.Memories().Create(t.Context(), scope, m)
		if err != nil {
			t.Fatal(err)
		}
		return created.Similar
	}
	first := create()
	m.Similar = nil
	if diff := cmp.Diff(first[:2], create()); diff != "" {
		t.Errorf("similar memories of a retry (-want +got):\n%s", diff)
	}
	if _, err := b.Memories().Delete(t.Context(), scope, []string{deleted}); err != nil {
		t.Fatal(err)
	}
	edited := "Moved to Munich"
	if _, err := b.Memories().Update(t.Context(), scope, memory.Edit{UpdateInput: memory.UpdateInput{ID: kept, Text: &edited}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]memory.SimilarMemory{{ID: kept, Text: edited, Score: 0.8}}, create()); diff != "" {
		t.Errorf("similar memories after a deletion and an edit (-want +got):\n%s", diff)
	}
}
