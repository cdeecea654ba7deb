package chat

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

var errUnavailable = errors.New("unavailable")

func TestIngestCountsTokens(t *testing.T) {
	t.Parallel()
	f := &fakes{}
	out, err := newService(f).Ingest(t.Context(), alice, valid())
	if err != nil {
		t.Fatal(err)
	}
	if out.ImportID != "i1" {
		t.Fatalf(`out.ImportID = %q, want "i1"`, out.ImportID)
	}
	if f.failure != "" {
		t.Fatalf("f.failure = %q, want it empty", f.failure)
	}
	if got := f.upserted.Messages[0].Tokens; got != 1 {
		t.Errorf("the message has %d tokens, want 1", got)
	}

	long := valid()
	long.Messages[0].Content = new(strings.Repeat("word ", MaxTokens+1))
	out, err = newService(f).Ingest(t.Context(), alice, long)
	if err != nil || out.ImportID != "i2" || !strings.Contains(f.failure, "more than 100000 tokens") {
		t.Errorf("Ingest = %+v, %v, failure %q, want a recorded failure", out, err, f.failure)
	}

	f.upsertFails = ErrTooLarge
	out, err = newService(f).Ingest(t.Context(), alice, valid())
	if err != nil || out.ImportID != "i2" || !strings.Contains(f.failure, "more than 32 MiB or 100000 messages") {
		t.Errorf("Ingest = %+v, %v, failure %q, want a recorded failure", out, err, f.failure)
	}
	f.upsertFails = nil

	fits := valid()
	fits.Messages[0].Content = new(strings.Repeat("word ", MaxTokens))
	if out, err = newService(f).Ingest(t.Context(), alice, fits); err != nil || out.ImportID != "i1" {
		t.Errorf("Ingest of exactly the limit = %+v, %v", out, err)
	}
}

func TestGet(t *testing.T) {
	t.Parallel()
	f := &fakes{conversations: []Conversation{{ID: "c1"}}}
	if c, _, err := newService(f).Get(t.Context(), alice, "c1"); err != nil || c.ID != "c1" {
		t.Errorf("Get = %+v, %v", c, err)
	}
	first := ""
	for _, id := range []string{"never", "", "a\x00", "\xff"} {
		_, _, err := newService(f).Get(t.Context(), alice, id)
		wantKind(t, err, fault.NotFound)
		if first == "" {
			first = err.Error()
		}
		if err.Error() != first {
			t.Errorf("id %q: %q, want %q as for other unknown ids", id, err, first)
		}
	}
}

func TestListValidates(t *testing.T) {
	t.Parallel()
	ok := ConversationFilter{Limit: 25}
	tests := map[string]struct {
		reason string
		change func(*ConversationFilter)
	}{
		"Limit0":   {"a page holds something", func(f *ConversationFilter) { f.Limit = 0 }},
		"Limit101": {"a page is bounded", func(f *ConversationFilter) { f.Limit = 101 }},
		"Offset":   {"pages count from 1", func(f *ConversationFilter) { f.Offset = -1 }},
		"Status":   {"only states there are", func(f *ConversationFilter) { f.Status = "gone" }},
		"Title":    {"U+0000", func(f *ConversationFilter) { f.Title = "\x00" }},
		"Provider": {"UTF-8", func(f *ConversationFilter) { f.Platform = "\xff" }},
	}
	if _, _, err := newService(&fakes{}).List(t.Context(), alice, ok); err != nil {
		t.Error(err)
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := ok
			tc.change(&f)
			_, _, err := newService(&fakes{}).List(t.Context(), alice, f)
			wantKind(t, err, fault.Invalid)
		})
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	f := &fakes{conversations: []Conversation{{ID: "c1"}}, indexFails: errUnavailable}
	s := newService(f)
	got, err := s.Delete(t.Context(), alice, []string{"c1", "never", "\x00"})
	if err != nil {
		t.Errorf("Delete with an unavailable index: %v", err)
	}
	if diff := cmp.Diff([]string{"c1"}, got); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
	if len(f.removed) != 1 {
		t.Errorf("removed %v from the index, want the one unit", f.removed)
	}
	_, err = s.Delete(t.Context(), alice, nil)
	wantKind(t, err, fault.Invalid)
	f.storeFails = errUnavailable
	if _, err = s.Delete(t.Context(), alice, []string{"c1"}); !errors.Is(err, errUnavailable) {
		t.Errorf("error = %v, want the store's", err)
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	f := &fakes{
		conversations: []Conversation{{ID: "c1", Platform: "custom"}, {ID: "c2", Platform: "other"}},
		messages: map[string][]Message{
			"c1": {{Index: 0, Text: "first piece. second piece"}, {Index: 1, Text: "grün"}},
			"c2": {{Index: 0, Text: "elsewhere"}},
		},
		ranking: retrieve.Result{Degraded: true, Found: []retrieve.Found{
			{Owner: "c1", Seq: 1, Start: 0, End: 5, Score: .9},
			{Owner: "gone", Score: .8},
			{Owner: "c2", Seq: 0, Start: 0, End: 9, Score: .7},
			{Owner: "c1", Seq: 0, Start: 13, End: 25, Score: .6},
		}},
	}
	got, degraded, err := newService(f).Search(t.Context(), alice, SearchInput{Query: "q", Limit: 5})
	if err != nil || !degraded {
		t.Fatalf("degraded = %v, %v", degraded, err)
	}
	var texts []string
	for _, r := range got {
		texts = append(texts, r.Message.Text)
	}
	if diff := cmp.Diff([]string{"grün", "elsewhere", "second piece"}, texts); diff != "" {
		t.Errorf("texts, best first (-want +got):\n%s", diff)
	}

	got, _, err = newService(f).Search(t.Context(), alice, SearchInput{Query: "q", Limit: 5, Platform: "other"})
	if err != nil {
		t.Fatalf("of the platform: %v", err)
	}
	if len(got) != 1 {
		t.Fatalf("of the platform: len(got) = %d, want 1", len(got))
	}
	if got[0].Conversation.ID != "c2" {
		t.Errorf(`of the platform: got[0].Conversation.ID = %q, want "c2"`, got[0].Conversation.ID)
	}
	if f.asked.Group != retrieve.GroupOf("other") {
		t.Errorf("searched group %d", f.asked.Group)
	}
}

func TestSearchValidates(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		in   SearchInput
		want string
	}{
		"Query":  {SearchInput{Query: " ", Limit: 1}, "query is required"},
		"Zero":   {SearchInput{Query: "\x00", Limit: 1}, "query must not contain"},
		"Limit":  {SearchInput{Query: "q", Limit: 101}, "limit must be 1 to 100"},
		"Limit0": {SearchInput{Query: "q"}, "limit must be 1 to 100"},
		"Around": {SearchInput{Query: "q", Limit: 1, Around: 21}, "context size must be 0 to 20"},
		"Skip":   {SearchInput{Query: "q", Limit: 1, Skip: -1}, "skip must be at least 0"},
		"Depth":  {SearchInput{Query: "q", Limit: 1, Depth: 101}, "depth 0 to 100"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := newService(&fakes{}).Search(t.Context(), alice, tc.in)
			wantKind(t, err, fault.Invalid)
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%q does not contain %q", err, tc.want)
			}
		})
	}
}
