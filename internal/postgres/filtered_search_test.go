package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/filter"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// crowd is a vector index whose best entries are always the same, as in a large account.
type crowd struct {
	retrieve.Index
	hits []retrieve.Hit
}

func (c crowd) Search(context.Context, tenant.Scope, placement.Location, retrieve.Request, []float32) ([]retrieve.Hit, error) {
	return c.hits, nil
}

// north is an embedder of queries.
type north struct{ retrieve.Embedder }

func (north) EmbedQuery(context.Context, string) ([]float32, error) { return toward(1), nil }
func (north) Embed(context.Context, []string) ([][]float32, error) {
	return nil, errors.New("passages have their vectors")
}
func (north) Dimensions() int { return 384 }

// toward returns a vector with this cosine with the query.
func toward(cosine float32) []float32 {
	v := make([]float32, 384)
	v[0], v[1] = cosine, 1-cosine*cosine // not normalized; only the first counts
	return v
}

// In a large account, the memories that match a filter rank far below thousands of others.
// The search finds all of them, in the order of their similarity.
func TestFilteredSearchFindsTheBestOfFew(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	big := b.remember(t, scope, "the others", nil)
	b.insertUnits(t, scope, big, 6000, "'2020-01-01'")
	var index crowd
	for _, id := range b.unitsOf(t, big)[:1000] {
		index.hits = append(index.hits, retrieve.Hit{ID: id, Score: 0.99})
	}
	var want []string
	for i, cosine := range []float32{0.1, 0.4, 0.3, -0.2, 0.2} {
		m := newMemory(fmt.Sprint("2025-05-09 memory ", i))
		m.Tags = []string{"few"}
		m.Units[0].Vector = toward(cosine)
		created, err := b.Memories().Create(t.Context(), scope, m)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, created.ID)
	}
	exec(t, b.owner, "update units set indexed_at = '2020-01-01'")
	exec(t, b.owner, "update units set generation_id = 0 where embedding is not null")
	want = []string{want[1], want[2], want[4], want[0], want[3]}

	engine := retrieve.New(retrieve.Config{Searcher: b.DB, Index: index, Embedders: retrieve.Embedders{0: north{}}})
	where := filter.Filter{Op: filter.Contains, Field: filter.Tags, Values: []filter.Value{{Kind: filter.String, Text: "few"}}}
	all := 0.0
	for _, limit := range []int{1, 3, 10} {
		result, err := engine.Search(t.Context(), scope, placement.Location{Collection: "c", Partition: "p"},
			retrieve.Query{Kind: retrieve.Memory, Text: "zebra", Where: where, Limit: limit, MinScore: &all})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range result.Found {
			got = append(got, f.Owner)
		}
		if diff := cmp.Diff(want[:min(limit, len(want))], got); diff != "" {
			t.Errorf("the %d best (-want +got):\n%s", limit, diff)
		}
		if result.Degraded {
			t.Errorf("the %d best are degraded", limit)
		}
	}
	// By words, the filter applies before the best are selected.
	hits, err := b.Lexical(t.Context(), scope, retrieve.Request{Kind: retrieve.Memory, Text: "memory lorem1 lorem2", Owners: want[:2], Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hits {
		if !slices.Contains(want[:2], b.ownerOf(t, h.ID)) {
			t.Errorf("Lexical found unit %d of another memory", h.ID)
		}
	}
	if len(hits) != 2 {
		t.Errorf("Lexical found %d units, want 2", len(hits))
	}
}
