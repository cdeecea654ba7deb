package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Following skip and nextSkip returns every memory exactly once and in
// insertion order, for all sizes of memories and pages, and during concurrent
// writes.
func TestPagesCoverEveryMemory(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	service := memory.NewService(memory.Config{Store: b.Memories(), Buckets: b.DB})
	rapid.Check(t, func(r *rapid.T) {
		who := tenant.Identity{Scope: b.users[0]}
		who.Quota.PageTokens = rapid.Int64Range(0, 400).Draw(r, "pageTokens")
		in := memory.ListInput{Count: rapid.IntRange(1, 12).Draw(r, "count"), All: rapid.Bool().Draw(r, "all")}
		sizes := rapid.SliceOfN(rapid.IntRange(1, 300), 0, 12)
		b.deleteAll(r, who.Scope)
		before := b.write(r, who.Scope, sizes.Draw(r, "existing"))
		var inserts errgroup.Group // concurrent with the listing
		for i, words := range sizes.Draw(r, "inserted concurrently") {
			inserts.Go(func() error {
				_, err := b.Memories().Create(t.Context(), who.Scope, newMemory(strings.Repeat(fmt.Sprintf("m%d ", i), words)+uuid.NewString()))
				return err
			})
		}
		between := rapid.SliceOfN(rapid.IntRange(0, 2), 0, 6).Draw(r, "inserted after each page")
		var got []string
		for {
			page, err := service.List(t.Context(), who, in)
			if err != nil {
				r.Fatal(err)
			}
			for _, m := range page.Memories {
				got = append(got, m.ID)
			}
			if len(between) > 0 {
				b.write(r, who.Scope, make([]int, between[0]))
				between = between[1:]
			}
			if in.Skip = page.NextSkip; in.Skip == 0 {
				break
			}
		}
		if err := inserts.Wait(); err != nil {
			r.Fatal(err)
		}
		all := b.inOrder(r, who.Scope)
		if len(got) < len(before) || !slices.Equal(got, all[:len(got)]) {
			r.Fatalf("listed %v; %v existed before, and %v exist afterwards", got, before, all)
		}
	})
}

// write stores memories of the given numbers of words.
func (b *testBundle) write(r *rapid.T, scope tenant.Scope, words []int) []string {
	r.Helper()
	var ids []string
	for _, n := range words {
		created, err := b.Memories().Create(context.Background(), scope, newMemory(strings.Repeat("word ", n)+uuid.NewString()))
		if err != nil {
			r.Fatal(err)
		}
		ids = append(ids, created.ID)
	}
	return ids
}

// inOrder returns the ids of a user's memories in insertion order.
func (b *testBundle) inOrder(r *rapid.T, scope tenant.Scope) []string {
	r.Helper()
	list, _, err := b.Memories().List(context.Background(), scope, memory.Filter{Limit: 1000})
	if err != nil {
		r.Fatal(err)
	}
	ids := make([]string, len(list))
	for i, m := range list {
		ids[i] = m.ID
	}
	return ids
}

func (b *testBundle) deleteAll(r *rapid.T, scope tenant.Scope) {
	r.Helper()
	if ids := b.inOrder(r, scope); len(ids) > 0 {
		if _, err := b.Memories().Delete(context.Background(), scope, ids); err != nil {
			r.Fatal(err)
		}
	}
}
