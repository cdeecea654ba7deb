package chat

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func TestIngestEmbedsShortConversations(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason   string
		messages int
		fails    error
		want     bool
	}{
		"short":                {"the next semantic search must find it", 3, nil, true},
		"long":                 {"the job embeds it, so that the request does not take long", maxRequestUnits + 1, nil, false},
		"embedder unavailable": {"it is stored without vectors", 3, errors.New("unavailable"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fakes{embedFails: tc.fails}
			if _, err := newService(f).Ingest(t.Context(), tenant.Identity{}, ingested(tc.messages)); err != nil {
				t.Fatal(err)
			}
			units := Plan(Conversation{}, nil, f.upserted, "id").Units()(all(tc.messages))
			if len(units) != tc.messages {
				t.Fatalf("%d units, want %d", len(units), tc.messages)
			}
			for _, u := range units {
				if got := u.Vector != nil; got != tc.want {
					t.Errorf("%s: unit %q has a vector: %t, want %t", tc.reason, u.Dense, got, tc.want)
				}
			}
		})
	}
}

// TestIngestEmbedsNewMessages: a client sends the whole conversation after each turn.
func TestIngestEmbedsNewMessages(t *testing.T) {
	t.Parallel()
	const before = 3 * maxRequestUnits // 48
	sent, err := ingested(before).Upsert()
	if err != nil {
		t.Fatal(err)
	}
	stored := Plan(Conversation{}, nil, sent, "id")
	for name, tc := range map[string]struct {
		change func(*IngestInput)
		want   []string // the messages that are embedded
	}{
		"Unchanged": {func(*IngestInput) {}, nil},
		"Title":     {func(in *IngestInput) { in.Title = new("other") }, nil},
		"NextTurn":  {func(in *IngestInput) { *in = ingested(before + 2) }, []string{"message 48", "message 49"}},
		"Edited":    {func(in *IngestInput) { in.Messages[3].Content = new("edited") }, []string{"edited"}},
		"Most":      {func(in *IngestInput) { *in = ingested(before + maxRequestUnits) }, texts(before, before+maxRequestUnits)},
		"TooMany":   {func(in *IngestInput) { *in = ingested(before + maxRequestUnits + 1) }, nil},
		"TooLong":   {func(in *IngestInput) { in.Messages[3].Content = new(strings.Repeat("A long answer. ", 4000)) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fakes{conversations: []Conversation{stored.After}, messages: map[string][]Message{"id": stored.Messages}}
			in := ingested(before)
			tc.change(&in)
			if _, err := newService(f).Ingest(t.Context(), tenant.Identity{}, in); err != nil {
				t.Fatal(err)
			}
			change := Plan(stored.After, stored.Messages, f.upserted, "")
			var embedded []string
			for _, u := range change.Units()(change.Written()) {
				if u.Vector != nil {
					embedded = append(embedded, change.Messages[u.Seq].Text)
				}
			}
			if diff := cmp.Diff(tc.want, embedded); diff != "" || len(f.embedded) != len(tc.want) {
				t.Errorf("%d texts are embedded; messages with vectors (-want +got):\n%s", len(f.embedded), diff)
			}
		})
	}
}

func TestIngestWhileStoreFails(t *testing.T) {
	t.Parallel()
	f := &fakes{storeFails: errors.New("unavailable")}
	if _, err := newService(f).Ingest(t.Context(), tenant.Identity{}, ingested(1)); !errors.Is(err, f.storeFails) {
		t.Errorf("Ingest = %v, want %v", err, f.storeFails)
	}
	if len(f.embedded) > 0 || len(f.upserted.Messages) > 0 {
		t.Errorf("%q are embedded and %d messages are stored, want none: reading the conversation failed", f.embedded, len(f.upserted.Messages))
	}
}

// texts returns the texts of messages of ingested.
func texts(from, to int) (out []string) {
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprintf("message %d", i))
	}
	return out
}

// ingested returns a conversation of n messages.
func ingested(n int) IngestInput {
	in := IngestInput{ID: new("c"), Title: new("t"), CreatedAt: new("2026-05-01T09:00:00Z")}
	for i := range n {
		in.Messages = append(in.Messages, IngestMessage{
			ID: new(fmt.Sprint(i)), Role: new("user"), Content: new(fmt.Sprintf("message %d", i)), CreatedAt: new("2026-05-01T09:00:00Z"),
		})
	}
	return in
}

// all returns the indexes 0 to n-1.
func all(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
