package chat

import (
	"errors"
	"fmt"
	"testing"

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
		"long":                 {"the job embeds it, so that the request does not take long", smallUnits + 1, nil, false},
		"embedder unavailable": {"it is stored without vectors", 3, errors.New("unavailable"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fakes{embedFails: tc.fails}
			in := IngestInput{ID: new("c"), Title: new("t"), CreatedAt: new("2026-05-01T09:00:00Z")}
			for i := range tc.messages {
				in.Messages = append(in.Messages, IngestMessage{
					ID: new(fmt.Sprint(i)), Role: new("user"), Content: new(fmt.Sprintf("message %d", i)), CreatedAt: new("2026-05-01T09:00:00Z"),
				})
			}
			if _, err := newService(f).Ingest(t.Context(), tenant.Identity{}, in); err != nil {
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

// all returns the indexes 0 to n-1.
func all(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
