package memory

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

func TestList(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason   string
		stored   int
		in       ListInput
		want     []string
		nextSkip int
	}{
		"Empty":      {"an empty account has an empty page", 0, ListInput{Count: 10}, []string{}, 0},
		"Oldest":     {"the default order is oldest first", 3, ListInput{Count: 2}, []string{"m0", "m1"}, 2},
		"Rest":       {"the last page has no next", 3, ListInput{Count: 2, Skip: 2}, []string{"m2"}, 0},
		"Exactly":    {"a page that ends with the list has no next", 2, ListInput{Count: 2}, []string{"m0", "m1"}, 0},
		"Past":       {"past the end is empty", 3, ListInput{Count: 2, Skip: 9}, []string{}, 0},
		"Latest":     {"newest first", 3, ListInput{Count: 2, Newest: true}, []string{"m2", "m1"}, 2},
		"All":        {"all lifts count", 3, ListInput{Count: 1, All: true}, []string{"m0", "m1", "m2"}, 0},
		"TokenCut":   {"1,000 tokens hold ten of a hundred", 12, ListInput{All: true}, idsUpTo(10), 10},
		"Query":      {"best match first, latest ignored", 3, ListInput{Count: 2, Query: "q", Newest: true}, []string{"m2", "m1"}, 2},
		"QueryRest":  {"skip walks the ranking", 3, ListInput{Count: 2, Query: "q", Skip: 2}, []string{"m0"}, 0},
		"QueryBlank": {"a blank query is ignored", 3, ListInput{Count: 1, Query: " "}, []string{"m0"}, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := newService(filled(tc.stored)).List(t.Context(), alice, tc.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, ids(got.Memories)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if got.NextSkip != tc.nextSkip {
				t.Errorf("%s: NextSkip = %d, want %d", tc.reason, got.NextSkip, tc.nextSkip)
			}
			if len(got.Buckets) != 1 {
				t.Errorf("%s: buckets = %v, want the default one", tc.reason, got.Buckets)
			}
		})
	}
}

func TestListReadsEveryPageOnce(t *testing.T) {
	t.Parallel()
	who := alice
	who.Quota.PageTokens = 1e6
	want := idsUpTo(2*MaxPage + 50)
	for _, newest := range []bool{false, true} {
		got, err := newService(filled(len(want))).List(t.Context(), who, ListInput{All: true, Newest: newest, Skip: 10})
		if err != nil {
			t.Fatal(err)
		}
		if newest {
			slices.Reverse(want)
		}
		if d := cmp.Diff(want[10:], ids(got.Memories)); d != "" {
			t.Errorf("newest %t: -want +got\n%s", newest, d)
		}
	}
}

func idsUpTo(n int) []string { return ids(filled(n).memories) }

func TestListRejectsInvalidInput(t *testing.T) {
	t.Parallel()
	s := newService(filled(1))
	for _, in := range []ListInput{{Count: 0}, {Count: -1}, {Count: 1, Skip: -1}, {Count: 1, Query: "a\x00"}} {
		_, err := s.List(t.Context(), alice, in)
		wantKind(t, err, fault.Invalid)
	}
	_, err := s.List(t.Context(), alice, ListInput{Count: 1, Bucket: 7})
	wantKind(t, err, fault.NotFound)
}

func TestListFailsWithTheStores(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]*fakes{
		"Buckets":  {bucketsFail: errUnavailable},
		"Memories": {storeFails: errUnavailable},
	} {
		if _, err := newService(f).List(t.Context(), alice, ListInput{Count: 10}); !errors.Is(err, errUnavailable) {
			t.Errorf("%s: List = %v, want %v", name, err, errUnavailable)
		}
	}
}

// The first memory is returned regardless of its size, even with a limit of 0 tokens.
func TestListReturnsAtLeastOneMemory(t *testing.T) {
	t.Parallel()
	who := alice
	who.Quota.PageTokens = 0
	got, err := newService(filled(2)).List(t.Context(), who, ListInput{Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Memories) != 1 {
		t.Errorf("len(Memories) = %d, want 1", len(got.Memories))
	}
	if got.NextSkip != 1 {
		t.Errorf("NextSkip = %d, want 1", got.NextSkip)
	}
}

// A match that was deleted after ranking counts as skipped but is not returned.
func TestListSkipsDeletedMatches(t *testing.T) {
	t.Parallel()
	f := filled(4)
	f.memories = slices.Delete(f.memories, 2, 3)
	got, err := newService(f).List(t.Context(), alice, ListInput{Count: 2, Query: "q"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"m3", "m1"}, ids(got.Memories)); diff != "" {
		t.Errorf("memories (-want +got):\n%s", diff)
	}
	if got.NextSkip != 3 {
		t.Errorf("NextSkip = %d, want 3", got.NextSkip)
	}
}

// Following nextSkip returns every memory exactly once, for any page sizes.
func TestPagesReturnEachMemoryOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		f := filled(rapid.IntRange(0, 450).Draw(r, "stored"))
		for i := range f.memories {
			f.memories[i].Tokens = rapid.IntRange(0, 1500).Draw(r, "tokens")
		}
		in := ListInput{
			Count: rapid.IntRange(1, 500).Draw(r, "count"), All: rapid.Bool().Draw(r, "all"), Newest: rapid.Bool().Draw(r, "newest"),
			Query: rapid.SampledFrom([]string{"", "q"}).Draw(r, "query"),
		}
		s := newService(f)
		got := []string{}
		for range len(f.memories) + 1 {
			page, err := s.List(t.Context(), alice, in)
			if err != nil {
				r.Fatal(err)
			}
			got = append(got, ids(page.Memories)...)
			if in.Skip = page.NextSkip; in.Skip == 0 {
				break
			}
		}
		want := ids(f.memories)
		if in.Newest || in.Query != "" {
			slices.Reverse(want)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			r.Fatalf("walk (-want +got):\n%s", diff)
		}
	})
}
