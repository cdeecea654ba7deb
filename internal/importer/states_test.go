package importer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// unsearchable finds nothing.
type unsearchable struct{ memory.Searcher }

func (unsearchable) Similar(context.Context, tenant.Scope, placement.Location, retrieve.Query, func() []float32) ([]retrieve.Similar, error) {
	return nil, nil
}

// user makes random requests for a user, some of which are invalid.
type user struct {
	*bundle
	t        *rapid.T
	ctx      context.Context
	who      tenant.Identity
	chats    *chat.Service
	memories *memory.Service
	buckets  []int64
	ids      []string // of memories
	talks    []string // ids of conversations
}

var oddTexts = []string{
	"", " ", "plain", " spaces ", "0", "\u2028\u2029", "\x01\x1b[31m\x7f", "\ufeff", "\u200b", "\u202eabc", "\ud7ff\ue000\ufffd\U0010ffff", "a\r\nb\tc", `"\/`,
	"🚢", "\u0085", "\u00a0x", "<script>&amp;", "null", "e\u0301 é", "x\x00y", "\xff", "uſer", strings.Repeat("é", 200), strings.Repeat("\u2028", 500), strings.Repeat("x", 501),
	strings.Repeat("long ", 6000),
}

var oddTimes = []string{
	"0001-01-01T00:00:00Z", "0001-01-01", "0001-01-01T00:00:00.0000009Z", "0001-01-01T00:00:00.000001Z", "0001-01-01T00:00:00-01:00", "0001-01-01T00:00:00+01:00",
	"0000-12-31", "9999-12-31T23:59:59.999999999Z", "9999-12-31", "9999-12-31T23:59:59-01:00", "1969-12-31T23:59:59.9999999Z", "1582-10-10T00:00:00Z",
	"2025-05-09T14:30:00.123456789+05:30", "2024-02-29", "2025-02-29", "2025-05-09T14:30", "yesterday", "",
}

var oddMetadata = []string{
	"", "{}", "null", "[]", `{"":{"":[]}}`, `{"n":0.10}`, `{"n":-0}`, `{"n":1E5}`, `{"n":1e400}`, `{"n":12345678901234567890}`, `{"a":1,"a":2}`, `{"a":"\u0000"}`,
	`{"a":"\ud800"}`, `{"a":"\u2028<&>"}`, `{"user_id":"bob"}`, `{"deep":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`, `{"list":[1,null,"ä",true]}`,
}

// text returns a text, every fourth one odd: a request has several, and must be valid as a whole.
func (u *user) text() string {
	switch u.dice(8) {
	case 0:
		return rapid.String().Draw(u.t, "text")
	case 1:
		return rapid.SampledFrom(oddTexts).Draw(u.t, "text")
	}
	return fmt.Sprint("text ", u.dice(20))
}

func (u *user) time() string {
	if u.dice(6) == 0 {
		return rapid.SampledFrom(oddTimes).Draw(u.t, "time")
	}
	return fmt.Sprintf("2025-05-%02dT14:30:00Z", 1+u.dice(28))
}

func (u *user) dice(n int) int { return rapid.IntRange(0, n-1).Draw(u.t, "dice") }

// one returns one of the ids.
func (u *user) one(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return rapid.SampledFrom(ids).Draw(u.t, "id")
}

// check fails for an error that is not the user's.
func (u *user) check(what string, err error) bool {
	refused, ok := errors.AsType[*fault.Error](err)
	if err != nil && (!ok || refused.Kind == fault.Unavailable) {
		u.t.Fatalf("%s: %v", what, err)
	}
	return err == nil
}

func (u *user) attributes() memory.Attributes {
	a := memory.Attributes{AgentID: u.text(), Metadata: json.RawMessage(rapid.SampledFrom(oddMetadata).Draw(u.t, "metadata"))}
	for range u.dice(3) {
		a.Tags = append(a.Tags, u.text())
	}
	return a
}

func (u *user) createMemory() {
	in := memory.CreateInput{Text: u.text(), Source: u.text(), Attributes: u.attributes()}
	if len(u.buckets) > 0 && u.dice(2) == 0 {
		in.Bucket = rapid.SampledFrom(u.buckets).Draw(u.t, "bucket")
	}
	m, err := u.memories.Create(u.ctx, u.who, in)
	if u.check("create memory", err) {
		u.ids = append(u.ids, m.ID)
	}
}

func (u *user) updateMemory() {
	in := memory.UpdateInput{ID: u.one(u.ids)}
	if text := u.text(); u.dice(2) == 0 {
		in.Text = &text
	}
	if a := u.attributes(); u.dice(2) == 0 {
		in.AttributeChanges = memory.AttributeChanges{AgentID: &a.AgentID, Tags: &a.Tags, Metadata: &a.Metadata}
	}
	_, err := u.memories.Update(u.ctx, u.who, in)
	u.check("update memory", err)
}

// changeMemories merges, restores, moves, supersedes or deletes memories.
func (u *user) changeMemories() {
	store, scope, id := u.db.Memories(), u.who.Scope, u.one(u.ids)
	var err error
	switch u.dice(5) {
	case 0, 1:
		_, err = store.Merge(u.ctx, scope, memory.MergeInput{Kept: id, IDs: []string{u.one(u.ids)}})
	case 2:
		_, err = store.Unmerge(u.ctx, scope, memory.UnmergeInput{Kept: id})
	case 3:
		_, err = store.Create(u.ctx, scope, memory.NewMemory{CreateInput: memory.CreateInput{Text: "newer"}, Units: retrieve.MemoryUnits("newer"), Links: memory.Links{Supersedes: []string{id}}})
	case 4:
		_, err = store.Delete(u.ctx, scope, []string{id})
	}
	if !strings.Contains(fmt.Sprint(err), "invalid input syntax for type uuid") { // there is no memory
		u.check("change memories", err)
	}
}

func (u *user) changeBuckets() {
	in := memory.BucketInput{Name: u.text(), Description: u.text()}
	if u.dice(2) == 0 || len(u.buckets) == 0 {
		id, err := u.memories.CreateBucket(u.ctx, u.who, in)
		if u.check("create bucket", err) {
			u.buckets = append(u.buckets, id)
		}
		return
	}
	id := rapid.SampledFrom(u.buckets).Draw(u.t, "bucket")
	if u.dice(3) == 0 {
		_, err := u.memories.DeleteBucket(u.ctx, u.who, id)
		u.check("delete bucket", err)
		return
	}
	u.check("update bucket", u.memories.UpdateBucket(u.ctx, u.who, id, memory.BucketUpdate{Name: &in.Name, Description: &in.Description}))
}

func (u *user) ingest() {
	in := chat.IngestInput{Platform: []string{"", "custom", "a.b-c_D"}[u.dice(3)], PlatformName: u.text(), ID: new(fmt.Sprint(u.dice(4), u.text())), Title: new(u.text()), CreatedAt: new(u.time())}
	if u.dice(2) == 0 {
		in.UpdatedAt = new(u.time())
	}
	for range 1 + u.dice(2) {
		role := []string{"user", "AI", "system", "tool"}[u.dice(4)]
		in.Messages = append(in.Messages, chat.IngestMessage{ID: new(u.text()), Role: &role, Content: new(u.text()), CreatedAt: new(u.time())})
	}
	out, err := u.chats.Ingest(u.ctx, u.who, in)
	if u.check("ingest", err) && out.Conversation.ID != "" {
		u.talks = append(u.talks, out.Conversation.ID)
	}
}

func (u *user) flag() {
	if id := u.one(u.talks); id != "" {
		yes, no := true, false
		_, err := u.db.Conversations().SetFlags(u.ctx, u.who.Scope, []string{id}, []chat.Flags{{Excluded: &yes}, {Pinned: &yes}, {Excluded: &no}, {Pinned: &no}}[u.dice(4)])
		u.check("set flags", err)
	}
}

// importChats imports a file of another platform.
func (u *user) importChats(t *testing.T) {
	quoted := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
	var file []byte
	if u.dice(2) == 0 {
		at := rapid.SampledFrom([]string{"1/2/0000 15:04:05 -07:00", "12/31/9999 23:59:59 -07:00", "1/1/0001 00:00:00", "5/9/2025 2:30:00 PM"}).Draw(u.t, "time")
		file = fmt.Appendf(nil, "Conversation,Time,Author,Message\n%s,%s,Human,%s\n", quoted(u.text()), quoted(at), quoted(u.text()))
	} else {
		file, _ = json.Marshal([]map[string]any{{"uuid": u.text(), "name": u.text(), "created_at": u.time(), "updated_at": u.time(), "chat_messages": []map[string]any{
			{"uuid": u.text(), "sender": "human", "text": u.text(), "created_at": u.time()}, {"sender": u.text(), "text": u.text(), "created_at": u.time()}}}})
	}
	u.importFile(t, u.who.Scope, file)
}

// Every state of an account that requests and imports can create survives an export and a restore.
func TestEveryStateSurvivesARestore(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Conversations, q.Memories, q.UserMemories = 3, 1000, tenant.NoLimit })
	chats := chat.NewService(chat.Config{Store: b.chats, CountTokens: func(text string, _ int) int { return words(text) }})
	memories := memory.NewService(memory.Config{Store: b.db.Memories(), Buckets: b.db, Searcher: unsearchable{}, CountTokens: words})
	rapid.Check(t, func(rt *rapid.T) {
		b.empty(t, b.alice) // of a failed check
		u := &user{bundle: b, t: rt, ctx: t.Context(), who: tenant.Identity{Scope: b.alice}, chats: chats, memories: memories}
		for range 20 + u.dice(20) {
			switch u.dice(9) {
			case 0, 1, 2:
				u.createMemory()
			case 3:
				u.updateMemory()
			case 4:
				u.changeMemories()
			case 5:
				u.changeBuckets()
			case 6:
				u.ingest()
			case 7:
				u.flag()
			case 8:
				u.importChats(t)
			}
		}
		file := b.exported(t, b.alice)
		b.empty(t, b.alice)
		if got := b.restore(t, b.alice, file); got.Status != importer.Done || got.Failed > 0 || len(got.Warnings) > 0 {
			rt.Fatalf("the import is %+v", got)
		}
		if again := b.exported(t, b.alice); !bytes.Equal(file, again) {
			rt.Fatalf("the restored account differs (-exported +restored):\n%s", cmp.Diff(contents(t, file), contents(t, again)))
		}
		b.checkMemoryCounters(t)
	})
}
