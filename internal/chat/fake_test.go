package chat

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

var alice = tenant.Identity{
	Scope:     tenant.Scope{Tenant: "t1", User: 1},
	Placement: placement.Location{Collection: "c", Partition: "p"},
}

// fakes are the dependencies of a Service, with the conversations and messages
// of one user.
type fakes struct {
	mu            sync.Mutex // of asked
	conversations []Conversation
	messages      map[string][]Message
	ranking       retrieve.Result
	asked         retrieve.Query
	upserted      Upsert
	flagged       []string // ids passed to SetFlags
	failure       string   // reason passed to RecordFailure
	removed       []retrieve.UnitID
	embedded      []string // texts passed to Embed

	storeFails, upsertFails, indexFails, embedFails error
}

func newService(f *fakes) *Service {
	return NewService(Config{Store: f, Passages: f, Searcher: f, Index: fakeIndex{f: f}, Embedders: retrieve.Embedders{0: f},
		CountTokens: func(text string, _ int) int { return len(strings.Fields(text)) }})
}

func (f *fakes) Upsert(_ context.Context, _ tenant.Scope, u Upsert) (Outcome, error) {
	f.upserted = u
	return Outcome{ImportID: "i1"}, cmp.Or(f.upsertFails, f.storeFails)
}

func (f *fakes) RecordFailure(_ context.Context, _ tenant.Scope, _ Upsert, reason string) (Outcome, error) {
	f.failure = reason
	return Outcome{ImportID: "i2"}, f.storeFails
}

func (f *fakes) Get(_ context.Context, _ tenant.Scope, id string) (Conversation, []Message, error) {
	for _, c := range f.conversations {
		if c.ID == id {
			return c, f.messages[id], f.storeFails
		}
	}
	return Conversation{}, nil, fault.New(fault.NotFound, "conversation %s", id)
}

func (f *fakes) Find(_ context.Context, _ tenant.Scope, key Key) (Conversation, []Message, error) {
	for _, c := range f.conversations {
		if c.Key() == key {
			return c, f.messages[c.ID], f.storeFails
		}
	}
	return Conversation{}, nil, f.storeFails
}

func (f *fakes) List(_ context.Context, _ tenant.Scope, _ ConversationFilter) ([]Conversation, int, error) {
	return f.conversations, len(f.conversations), f.storeFails
}

func (f *fakes) Delete(_ context.Context, _ tenant.Scope, ids []string) (Deleted, error) {
	if f.storeFails != nil {
		return Deleted{}, f.storeFails
	}
	var out Deleted
	for _, c := range f.conversations {
		if slices.Contains(ids, c.ID) {
			out.IDs, out.Units = append(out.IDs, c.ID), append(out.Units, 1)
		}
	}
	return out, nil
}

// DeleteUndoable deletes conversations; Undelete knows one deletion, "undo".
func (f *fakes) DeleteUndoable(ctx context.Context, scope tenant.Scope, ids []string) (Deleted, error) {
	out, err := f.Delete(ctx, scope, ids)
	out.Undo = "undo"
	return out, err
}

func (f *fakes) Undelete(_ context.Context, _ tenant.Scope, deletion string) ([]string, error) {
	if deletion != "undo" {
		return nil, fault.New(fault.NotFound, "no deletion %s", deletion)
	}
	return []string{"c1"}, f.storeFails
}

// SetFlags returns ids in the order of the store, not in the order given.
func (f *fakes) SetFlags(_ context.Context, _ tenant.Scope, ids []string, _ Flags) ([]string, error) {
	f.flagged = ids
	var out []string
	for _, c := range f.conversations {
		if slices.Contains(ids, c.ID) {
			out = append(out, c.ID)
		}
	}
	return out, f.storeFails
}

func (f *fakes) Count(context.Context, tenant.Scope) (int64, error) {
	return int64(len(f.conversations)), f.storeFails
}

func (f *fakes) HasPlatform(_ context.Context, _ tenant.Scope, names []string) (bool, error) {
	known := func(c Conversation) bool { return slices.Contains(names, strings.ToLower(c.Platform)) }
	return slices.ContainsFunc(f.conversations, known), f.storeFails
}

// Passages returns passages in reverse order: the order is unspecified.
func (f *fakes) Passages(_ context.Context, _ tenant.Scope, places []Position, _ int) ([]Passage, error) {
	var out []Passage
	for _, at := range places {
		c := slices.IndexFunc(f.conversations, func(c Conversation) bool { return c.ID == at.Conversation })
		m := slices.IndexFunc(f.messages[at.Conversation], func(m Message) bool { return m.Index == at.Index })
		if c < 0 || m < 0 {
			continue
		}
		found := f.messages[at.Conversation][m]
		length := len(found.Text)
		found.Text = found.Text[at.Start:at.End]
		out = append([]Passage{{Position: at, Conversation: f.conversations[c], Message: found, Length: length}}, out...)
	}
	return out, f.storeFails
}

func (f *fakes) Openings(_ context.Context, _ tenant.Scope, ids []string) (map[string]string, error) {
	out := map[string]string{}
	for _, id := range ids {
		if list := f.messages[id]; len(list) > 0 {
			out[id] = list[0].Text
		}
	}
	return out, f.storeFails
}

func (f *fakes) Search(_ context.Context, _ tenant.Scope, _ placement.Location, q retrieve.Query) (retrieve.Result, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = q
	return f.ranking, nil
}

// fakeIndex is the index; its Delete differs from that of the store.
type fakeIndex struct {
	indexing.Store
	f *fakes
}

func (i fakeIndex) Delete(_ context.Context, _ tenant.ID, _ placement.Location, ids []retrieve.UnitID) error {
	i.f.removed = append(i.f.removed, ids...)
	return i.f.indexFails
}

func wantKind(t *testing.T, err error, want fault.Kind) {
	t.Helper()
	if err == nil || fault.KindOf(err) != want {
		t.Fatalf("error = %v, want one of kind %v", err, want)
	}
}

// Embed returns a vector with the length of each text.
func (f *fakes) Embed(_ context.Context, texts []string) ([][]float32, error) {
	f.embedded = append(f.embedded, texts...)
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = []float32{float32(len(text))}
	}
	return out, f.embedFails
}

func (f *fakes) EmbedQuery(_ context.Context, text string) ([]float32, error) {
	return []float32{float32(len(text))}, f.embedFails
}
func (f *fakes) Model() string   { return "fake" }
func (f *fakes) Dimensions() int { return 1 }
