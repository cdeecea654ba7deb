package apiserver

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/filter"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// fakeStores replaces all stores in tests of the HTTP layer. Each method returns
// fails if it is set.
type fakeStores struct {
	mu    sync.Mutex
	fails error
	seq   int64
	users map[tenant.Scope]*fakeUser
	known map[tenant.Hash]tenant.Identity
	asked int // calls of Identify
	// acting are the names of the users of applications.
	acting []string
	// tokens are those that users created.
	tokens map[tenant.Scope][]tenant.UserToken

	chunks    map[string][]byte // of uploads, by their import
	requested tenant.Request    // the one that finished the last upload
}

type fakeUser struct {
	buckets       []memory.Bucket
	memories      []memory.Memory
	merged        []memory.Memory
	conversations []chat.Conversation
	messages      map[string][]chat.Message
	imports       []importer.Import // newest last
}

var noon = time.Date(2025, 5, 9, 12, 0, 0, 123456789, time.UTC)

func newFakeStores() *fakeStores {
	return &fakeStores{users: map[tenant.Scope]*fakeUser{}, known: map[tenant.Hash]tenant.Identity{}, tokens: map[tenant.Scope][]tenant.UserToken{}, chunks: map[string][]byte{}}
}

// begin locks the stores and returns the user, with a default bucket.
func (f *fakeStores) begin(scope tenant.Scope) (u *fakeUser, end func(), err error) {
	f.mu.Lock()
	u = f.users[scope]
	if u == nil {
		f.seq++
		u = &fakeUser{messages: map[string][]chat.Message{}, buckets: []memory.Bucket{{ID: f.seq, Name: memory.DefaultBucket, Default: true}}}
		f.users[scope] = u
	}
	return u, f.mu.Unlock, f.fails
}

func (f *fakeStores) Identify(_ context.Context, h tenant.Hash) (tenant.Identity, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	who, ok := f.known[h]
	if !ok {
		return who, cmp.Or[error](f.fails, fault.New(fault.Unauthorized, "unknown token"))
	}
	return who, f.fails
}

func (f *fakeStores) Install(context.Context, tenant.ID, string, tenant.Credential) error { return nil }
func (f *fakeStores) RevokeOlder(context.Context, tenant.ID, string, int64, time.Duration) error {
	return nil
}

// fail makes every subsequent call return the error.
func (f *fakeStores) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fails = err
}

// forget removes a token.
func (f *fakeStores) forget(h tenant.Hash) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.known, h)
}

// identified returns the number of calls of Identify.
func (f *fakeStores) identified() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

type fakeMemories struct{ *fakeStores }

// Prepare implements memory.Store. Create prepares the memory.
func (f fakeMemories) Prepare(context.Context, tenant.Scope, memory.NewMemory) (memory.Prepared, error) {
	return memory.Prepared{}, nil
}

func (f fakeMemories) Create(_ context.Context, scope tenant.Scope, m memory.NewMemory) (memory.Created, error) {
	u, end, err := f.begin(scope)
	defer end()
	if err != nil {
		return memory.Created{}, err
	}
	i := 0
	if m.Bucket != 0 {
		i = slices.IndexFunc(u.buckets, func(b memory.Bucket) bool { return b.ID == m.Bucket })
	}
	if i < 0 {
		return memory.Created{}, fault.New(fault.NotFound, "bucket not found")
	}
	for _, old := range u.memories {
		if old.Text == m.Text && old.BucketID == u.buckets[i].ID && old.Equal(m.Attributes) {
			return memory.Created{ID: old.ID, Duplicate: true}, nil
		}
	}
	f.seq++
	u.buckets[i].Memories++
	id := "m-" + strconv.FormatInt(f.seq, 10)
	u.memories = append(u.memories, memory.Memory{ID: id, Seq: f.seq, BucketID: u.buckets[i].ID, BucketName: u.buckets[i].Name,
		Text: m.Text, Tokens: m.Tokens, Source: m.Source, Attributes: m.Attributes, Version: 1, CreatedAt: noon, UpdatedAt: noon})
	return memory.Created{ID: id}, nil
}

func (f fakeMemories) List(_ context.Context, scope tenant.Scope, q memory.Filter) ([]memory.Memory, bool, error) {
	u, end, err := f.begin(scope)
	defer end()
	var list []memory.Memory
	for _, m := range u.memories {
		if q.Bucket == 0 || q.Bucket == m.BucketID {
			list = append(list, m)
		}
	}
	if q.Newest {
		slices.Reverse(list)
	}
	if q.After != 0 {
		last := slices.IndexFunc(list, func(m memory.Memory) bool { return m.Seq == q.After })
		list = list[last+1:]
	}
	list = list[min(q.Skip, len(list)):]
	n := min(q.Limit, len(list))
	return list[:n], len(list) > n, err
}

func (f fakeMemories) ByID(_ context.Context, scope tenant.Scope, ids []string, _ time.Time) ([]memory.Memory, error) {
	u, end, err := f.begin(scope)
	defer end()
	var out []memory.Memory
	for _, m := range u.memories {
		if slices.Contains(ids, m.ID) {
			out = append(out, m)
		}
	}
	return out, err
}

func (f fakeMemories) Count(_ context.Context, scope tenant.Scope, _ filter.Filter) (int, error) {
	u, end, err := f.begin(scope)
	defer end()
	return len(u.memories), err
}

func (f fakeMemories) Matching(_ context.Context, scope tenant.Scope, _ filter.Filter, limit int) ([]string, error) {
	u, end, err := f.begin(scope)
	defer end()
	var ids []string
	for _, m := range u.memories[:min(limit, len(u.memories))] {
		ids = append(ids, m.ID)
	}
	return ids, err
}

func (f fakeMemories) Groups(_ context.Context, scope tenant.Scope, _, _ int) (groups []memory.Group, n int, err error) {
	u, end, err := f.begin(scope)
	defer end()
	for _, m := range u.memories {
		if m.AgentID != "" {
			groups = append(groups, memory.Group{Kind: "agent", Name: m.AgentID, Memories: 1, CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt})
		}
	}
	return groups, len(groups), err
}

func (f fakeMemories) Labels(context.Context, tenant.Scope) (memory.Labels, error) {
	return memory.Labels{}, nil
}

func (f fakeMemories) DeleteUndoable(ctx context.Context, scope tenant.Scope, ids []string) (memory.Deleted, error) {
	return f.Delete(ctx, scope, ids)
}

// Undelete finds no deletion: none can be undone here.
func (f fakeMemories) Undelete(context.Context, tenant.Scope, string) ([]string, error) {
	return nil, fault.New(fault.NotFound, "the deletion can no longer be undone")
}

func (f fakeMemories) Newer(context.Context, tenant.Scope, []string, memory.Filter) (map[string]string, error) {
	return nil, f.fails
}

func (f fakeMemories) Delete(_ context.Context, scope tenant.Scope, ids []string) (memory.Deleted, error) {
	u, end, err := f.begin(scope)
	defer end()
	var out memory.Deleted
	if err != nil {
		return out, err
	}
	u.memories = slices.DeleteFunc(u.memories, func(m memory.Memory) bool {
		if !slices.Contains(ids, m.ID) {
			return false
		}
		out.IDs, out.Units = append(out.IDs, m.ID), append(out.Units, 1)
		return true
	})
	return out, nil
}

func (f fakeMemories) ListBuckets(_ context.Context, scope tenant.Scope) ([]memory.Bucket, error) {
	u, end, err := f.begin(scope)
	defer end()
	return slices.Clone(u.buckets), err
}

func (f fakeMemories) CreateBucket(_ context.Context, scope tenant.Scope, b memory.BucketInput) (int64, error) {
	u, end, err := f.begin(scope)
	defer end()
	if err != nil {
		return 0, err
	}
	if slices.ContainsFunc(u.buckets, func(o memory.Bucket) bool { return strings.EqualFold(o.Name, b.Name) }) {
		return 0, fault.New(fault.Conflict, "name %q is taken by another bucket", b.Name)
	}
	f.seq++
	u.buckets = append(u.buckets, memory.Bucket{ID: f.seq, Name: b.Name, Description: b.Description})
	return f.seq, nil
}

// Search returns everything, newest first.
func (f fakeMemories) Similar(_ context.Context, _ tenant.Scope, _ placement.Location, _ retrieve.Query, embed func() []float32) ([]retrieve.Similar, error) {
	embed()
	return nil, nil
}

func (f fakeMemories) Search(_ context.Context, scope tenant.Scope, _ placement.Location, q retrieve.Query) (retrieve.Result, error) {
	u, end, err := f.begin(scope)
	defer end()
	var out retrieve.Result
	if q.Kind == retrieve.Memory {
		for _, m := range slices.Backward(u.memories) {
			out.Found = append(out.Found, retrieve.Found{Owner: m.ID, Score: .5})
		}
		out.Degraded = q.Text == "degraded"
		return out, err
	}
	for _, c := range slices.Backward(u.conversations) {
		for _, m := range u.messages[c.ID] {
			out.Found = append(out.Found, retrieve.Found{Owner: c.ID, Seq: m.Index, End: len(m.Text), Score: .5})
		}
	}
	out.Found, out.Degraded = out.Found[:min(q.Limit, len(out.Found))], true
	return out, err
}

type fakeChats struct{ *fakeStores }

func (f fakeChats) Upsert(_ context.Context, scope tenant.Scope, in chat.Upsert) (chat.Outcome, error) {
	u, end, err := f.begin(scope)
	defer end()
	if err != nil {
		return chat.Outcome{}, err
	}
	f.seq++
	c := chat.Conversation{ID: "c-" + strconv.FormatInt(f.seq, 10), ExternalID: in.ExternalID, Platform: in.Platform, Title: in.Title,
		Status: chat.Active, MessageCount: len(in.Messages), TokenCount: 7, CreatedAt: in.CreatedAt, UpdatedAt: noon}
	for i, m := range in.Messages {
		m.Index = i
		u.messages[c.ID] = append(u.messages[c.ID], m)
	}
	u.conversations = append(u.conversations, c)
	u.imports = append(u.imports, importer.Import{ID: "i-1", Platform: in.Platform, Status: importer.Done, Total: 1, Imported: 1,
		Indexed: 1, StartedAt: noon, FinishedAt: noon, Version: 1})
	return chat.Outcome{ImportID: "i-1", Conversation: c}, nil
}

func (f fakeChats) RecordFailure(_ context.Context, scope tenant.Scope, _ chat.Upsert, _ string) (chat.Outcome, error) {
	_, end, err := f.begin(scope)
	defer end()
	return chat.Outcome{ImportID: "i-2", Failed: true}, err
}

func (f fakeChats) Get(_ context.Context, scope tenant.Scope, id string) (chat.Conversation, []chat.Message, error) {
	u, end, err := f.begin(scope)
	defer end()
	for _, c := range u.conversations {
		if c.ID == id {
			return c, u.messages[id], err
		}
	}
	return chat.Conversation{}, nil, cmp.Or[error](err, fault.New(fault.NotFound, "conversation %s", id))
}

func (f fakeChats) Find(_ context.Context, scope tenant.Scope, key chat.Key) (chat.Conversation, []chat.Message, error) {
	u, end, err := f.begin(scope)
	defer end()
	for _, c := range u.conversations {
		if c.Key() == key {
			return c, u.messages[c.ID], err
		}
	}
	return chat.Conversation{}, nil, err
}

func (f fakeChats) List(_ context.Context, scope tenant.Scope, q chat.ConversationFilter) ([]chat.Conversation, int, error) {
	u, end, err := f.begin(scope)
	defer end()
	list := u.conversations[min(q.Offset, len(u.conversations)):]
	return list[:min(q.Limit, len(list))], len(u.conversations), err
}

func (f fakeChats) DeleteUndoable(ctx context.Context, scope tenant.Scope, ids []string) (chat.Deleted, error) {
	return f.Delete(ctx, scope, ids)
}

// Undelete finds no deletion: none can be undone here.
func (f fakeChats) Undelete(context.Context, tenant.Scope, string) ([]string, error) {
	return nil, fault.New(fault.NotFound, "the deletion can no longer be undone")
}

func (f fakeChats) Delete(_ context.Context, scope tenant.Scope, ids []string) (chat.Deleted, error) {
	u, end, err := f.begin(scope)
	defer end()
	var out chat.Deleted
	if err != nil {
		return out, err
	}
	u.conversations = slices.DeleteFunc(u.conversations, func(c chat.Conversation) bool {
		if !slices.Contains(ids, c.ID) {
			return false
		}
		out.IDs = append(out.IDs, c.ID)
		return true
	})
	return out, nil
}

func (f fakeChats) SetFlags(_ context.Context, scope tenant.Scope, ids []string, m chat.Flags) ([]string, error) {
	u, end, err := f.begin(scope)
	defer end()
	var out []string
	for i, c := range u.conversations {
		if slices.Contains(ids, c.ID) {
			out = append(out, c.ID)
			u.conversations[i].Pinned = m.Pinned != nil && *m.Pinned
		}
	}
	return out, err
}

func (f fakeChats) Count(_ context.Context, scope tenant.Scope) (int64, error) {
	u, end, err := f.begin(scope)
	defer end()
	return int64(len(u.conversations)), err
}

func (f fakeChats) HasPlatform(_ context.Context, scope tenant.Scope, names []string) (bool, error) {
	u, end, err := f.begin(scope)
	defer end()
	known := func(c chat.Conversation) bool { return slices.Contains(names, strings.ToLower(c.Platform)) }
	return slices.ContainsFunc(u.conversations, known), err
}

func (f fakeChats) Passages(_ context.Context, scope tenant.Scope, places []chat.Position, around int) ([]chat.Passage, error) {
	u, end, err := f.begin(scope)
	defer end()
	var out []chat.Passage
	for _, at := range places {
		c := slices.IndexFunc(u.conversations, func(c chat.Conversation) bool { return c.ID == at.Conversation })
		messages := u.messages[at.Conversation]
		if c < 0 || at.Index >= len(messages) {
			continue
		}
		p := chat.Passage{Position: at, Conversation: u.conversations[c], Message: messages[at.Index], Length: len(messages[at.Index].Text)}
		p.Message.Text = p.Message.Text[at.Start:at.End]
		for j := max(0, at.Index-around); j <= at.Index+around && j < len(messages); j++ {
			if j != at.Index {
				p.Context = append(p.Context, messages[j])
			}
		}
		out = append(out, p)
	}
	return out, err
}

func (f fakeChats) Openings(_ context.Context, scope tenant.Scope, ids []string) (map[string]string, error) {
	u, end, err := f.begin(scope)
	defer end()
	out := map[string]string{}
	for _, id := range ids {
		if list := u.messages[id]; len(list) > 0 {
			out[id] = list[0].Text
		}
	}
	return out, err
}

// fakeIndex and fakeEmbedder are there and do nothing.
type fakeIndex struct{ indexing.Store }

func (fakeIndex) Delete(context.Context, tenant.ID, placement.Location, []retrieve.UnitID) error {
	return nil
}

type fakeEmbedder struct{}

func (fakeEmbedder) Embed(context.Context, []string) ([][]float32, error) {
	return nil, fmt.Errorf("no embedder")
}
func (fakeEmbedder) EmbedQuery(context.Context, string) ([]float32, error) {
	return nil, fmt.Errorf("no embedder")
}
func (fakeEmbedder) Model() string   { return "none" }
func (fakeEmbedder) Dimensions() int { return 1 }
