package search

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// fakes are both services with fixed results.
type fakes struct {
	memories    memory.Listing
	passages    []chat.SearchResult
	memoriesErr error
	chatsErr    error
	hangs       bool // until it is canceled
	pageTokens  int64
	recalled    chat.RecallInput
}

func (f *fakes) List(ctx context.Context, who tenant.Identity, _ memory.ListInput) (memory.Listing, error) {
	f.pageTokens = who.Quota.PageTokens
	if f.hangs {
		<-ctx.Done()
		return memory.Listing{}, ctx.Err()
	}
	return f.memories, f.memoriesErr
}

func (f *fakes) Search(context.Context, tenant.Identity, chat.SearchInput) ([]chat.SearchResult, bool, error) {
	return f.passages, false, f.chatsErr
}

func (f *fakes) Recall(_ context.Context, _ tenant.Identity, in chat.RecallInput) ([]chat.Recollection, bool, error) {
	f.recalled = in
	return nil, false, nil
}

func newFakes() *fakes {
	return &fakes{
		memories: memory.Listing{Memories: []memory.Memory{{ID: "m1", Score: 0.9}, {ID: "m2", Score: 0.4}, {ID: "m3", Score: 0.05}}, Relevant: 2, Degraded: true},
		passages: []chat.SearchResult{
			{Passage: chat.Passage{Conversation: chat.Conversation{ID: "c1"}}, Score: 0.5},
			{Passage: chat.Passage{Conversation: chat.Conversation{ID: "c2"}}, Score: 0.01, Irrelevant: true},
		},
	}
}

func (r Result) id() string {
	if r.Memory != nil {
		return r.Memory.ID
	}
	return r.Passage.Conversation.ID
}

func TestSearch(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason     string
		include    []Kind
		limit      int
		want       []string
		irrelevant int
		degraded   bool
	}{
		"Both":     {"one ranking by score", nil, 10, []string{"m1", "c1", "m2", "m3", "c2"}, 2, true},
		"Limit":    {"the best of both", nil, 2, []string{"m1", "c1"}, 0, true},
		"Memories": {"only memories", []Kind{Memories}, 10, []string{"m1", "m2", "m3"}, 1, true},
		"Chats":    {"only conversations", []Kind{Chats}, 10, []string{"c1", "c2"}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFakes()
			found, degraded, err := Service{f, f}.Search(t.Context(), tenant.Identity{}, Input{Query: "q", Include: test.include, Limit: test.limit})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			irrelevant := 0
			for _, r := range found {
				got = append(got, r.id())
				if r.Irrelevant {
					irrelevant++
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
			if irrelevant != test.irrelevant {
				t.Errorf("%d are irrelevant, want %d", irrelevant, test.irrelevant)
			}
			if degraded != test.degraded {
				t.Errorf("degraded = %v, want %v", degraded, test.degraded)
			}
		})
	}
}

// The error is that of the failed search, not of the one that was canceled for it.
func TestSearchFails(t *testing.T) {
	t.Parallel()
	failure := fault.New(fault.Unavailable, "unavailable")
	for name, f := range map[string]*fakes{"Memories": {memoriesErr: failure}, "Chats": {chatsErr: failure, hangs: true}} {
		if _, _, err := (Service{f, f}).Search(t.Context(), tenant.Identity{}, Input{Query: "q", Limit: 1}); !errors.Is(err, failure) {
			t.Errorf("%s: error = %v, want %v", name, err, failure)
		}
	}
	f := newFakes()
	for _, in := range []Input{{Query: " ", Limit: 1}, {Query: "q"}, {Query: "q", Limit: 1, Include: []Kind{"files"}}, {Query: "q", Limit: 1, MinScore: new(2.0)}} {
		if _, _, err := (Service{f, f}).Search(t.Context(), tenant.Identity{}, in); !fault.Is(err, fault.Invalid) {
			t.Errorf("Search(%+v) = %v, want Invalid", in, err)
		}
	}
}

func TestRecall(t *testing.T) {
	t.Parallel()
	question := chat.RecallInput{Queries: []chat.RecallQuery{{Text: "q", MaxTokens: 9}}}
	for _, test := range []struct {
		include                []Kind
		memories, onlyMemories bool
	}{
		{nil, true, false}, {Kinds, true, false}, {[]Kind{Chats}, false, false}, {[]Kind{Memories}, true, true},
	} {
		f := newFakes()
		if _, _, err := (Service{f, f}).Recall(t.Context(), tenant.Identity{}, question, test.include); err != nil {
			t.Fatal(err)
		}
		if got := f.recalled.Memories != nil; got != test.memories {
			t.Errorf("include %v: memories %v, want %v", test.include, got, test.memories)
		}
		if got := f.recalled.OnlyMemories; got != test.onlyMemories {
			t.Errorf("include %v: only memories %v, want %v", test.include, got, test.onlyMemories)
		}
	}
	if _, _, err := (Service{}).Recall(t.Context(), tenant.Identity{}, question, []Kind{"files"}); !fault.Is(err, fault.Invalid) {
		t.Errorf("unknown kind: %v, want Invalid", err)
	}
}

func TestFindMemories(t *testing.T) {
	t.Parallel()
	f := newFakes()
	got, degraded, err := (Service{f, f}).FindMemories(t.Context(), tenant.Identity{}, "q", 9, nil)
	if err != nil || len(got) != 3 || got[0].ID != "m1" || !degraded {
		t.Errorf("FindMemories = %v, %v, %v", got, degraded, err)
	}
}

// The token limit of listings does not omit results: a search has no next page.
func TestListingLimitDoesNotApply(t *testing.T) {
	t.Parallel()
	who := tenant.Identity{Quota: tenant.Quota{PageTokens: 25_000}}
	f := newFakes()
	if _, _, err := (Service{f, f}).Search(t.Context(), who, Input{Query: "q", Limit: chat.MaxResults}); err != nil {
		t.Fatal(err)
	}
	if f.pageTokens < 1<<40 {
		t.Errorf("Search lists at most %d tokens", f.pageTokens)
	}
	if _, _, err := (Service{f, f}).FindMemories(t.Context(), who, "q", chat.MaxResults, nil); err != nil {
		t.Fatal(err)
	}
	if f.pageTokens < 1<<40 {
		t.Errorf("FindMemories lists at most %d tokens", f.pageTokens)
	}
}
