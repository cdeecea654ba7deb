package chat

import (
	"errors"
	"fmt"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func TestIngestEmbedsAShortConversationAtOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason   string
		messages int
		fails    error
		want     bool
	}{
		"short":           {"the next search must find it by meaning", 3, nil, true},
		"long":            {"its sender does not wait: the job embeds it", smallUnits + 1, nil, false},
		"embedder is out": {"it is stored all the same", 3, errors.New("away"), false},
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
			if len(f.built) != tc.messages {
				t.Fatalf("%d units, want %d", len(f.built), tc.messages)
			}
			for _, u := range f.built {
				if got := u.Vector != nil; got != tc.want {
					t.Errorf("%s: unit %q has a vector: %t, want %t", tc.reason, u.Dense, got, tc.want)
				}
			}
		})
	}
}
