package archive

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/textrule"
)

// box is an in-memory account.
type box struct {
	buckets       []account.Bucket
	memories      []account.Memory
	versions      []account.Version
	conversations []chat.Conversation
	messages      []account.Message
}

func (b box) Buckets() iter.Seq2[account.Bucket, error]          { return all(b.buckets) }
func (b box) Memories() iter.Seq2[account.Memory, error]         { return all(b.memories) }
func (b box) Versions() iter.Seq2[account.Version, error]        { return all(b.versions) }
func (b box) Conversations() iter.Seq2[chat.Conversation, error] { return all(b.conversations) }
func (b box) Messages() iter.Seq2[account.Message, error]        { return all(b.messages) }

func all[T any](list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range list {
			if !yield(v, nil) {
				return
			}
		}
	}
}

func (b box) counts() account.Counts {
	return account.Counts{Buckets: int64(len(b.buckets)), Memories: int64(len(b.memories)), Versions: int64(len(b.versions)),
		Conversations: int64(len(b.conversations)), Messages: int64(len(b.messages))}
}

// take reads all records of a Content.
func take(t interface{ Fatal(...any) }, c account.Content) box {
	var b box
	collect(t, c.Buckets(), &b.buckets)
	collect(t, c.Memories(), &b.memories)
	collect(t, c.Versions(), &b.versions)
	collect(t, c.Conversations(), &b.conversations)
	collect(t, c.Messages(), &b.messages)
	return b
}

func collect[T any](t interface{ Fatal(...any) }, from iter.Seq2[T, error], to *[]T) {
	for v, err := range from {
		if err != nil {
			t.Fatal(err)
		}
		*to = append(*to, v)
	}
}

// written returns the account as a file.
func written(t interface{ Fatal(...any) }, b box) []byte {
	var out bytes.Buffer
	if err := Write(&out, noon, b.counts(), b); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

var noon = time.Date(2025, 5, 9, 12, 0, 0, 123456000, time.UTC)

// Reading an export returns what was written, and writing it again yields the same file.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := anyBox(t)
		file := written(t, b)
		a, err := Open(bytes.NewReader(file), int64(len(file)), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if a.Counts != b.counts() || !a.At.Equal(noon) {
			t.Fatalf("counts %+v at %s", a.Counts, a.At)
		}
		got := take(t, a)
		if diff := cmp.Diff(b, got, cmp.AllowUnexported(box{}), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("read back (-want +got):\n%s", diff)
		}
		if !bytes.Equal(written(t, got), file) {
			t.Fatal("writing the archive again yields a different file")
		}
		joined := box{buckets: b.buckets}
		for h, err := range a.MemoryHistories() {
			if err != nil {
				t.Fatal(err)
			}
			joined.memories, joined.versions = append(joined.memories, h.Memory), append(joined.versions, h.Earlier...)
		}
		for k, err := range a.Transcripts() {
			if err != nil {
				t.Fatal(err)
			}
			joined.conversations = append(joined.conversations, k.Conversation)
			for _, m := range k.Messages {
				joined.messages = append(joined.messages, account.Message{Conversation: k.ID, Message: m})
			}
		}
		if diff := cmp.Diff(b, joined, cmp.AllowUnexported(box{}), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("joined (-want +got):\n%s", diff)
		}
	})
}

// anyBox generates a valid account.
func anyBox(t *rapid.T) box {
	when := rapid.Custom(func(t *rapid.T) time.Time {
		return time.UnixMicro(rapid.Int64Range(-62135596799000000, 253402300799999999).Draw(t, "microseconds")).UTC()
	})
	text := rapid.StringN(0, 60, -1).Filter(func(s string) bool { return !bytes.ContainsRune([]byte(s), 0) })
	filled := rapid.Map(text, func(s string) string { return "x" + s })
	name := filled.Filter(func(s string) bool { return textrule.NameProblem(s) == "" })
	id := rapid.Custom(func(t *rapid.T) string {
		return uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id")).String()
	})
	b := box{buckets: []account.Bucket{{ID: 1, Name: "General", Default: true, CreatedAt: when.Draw(t, "created")}}}
	for n := range rapid.IntRange(0, 3).Draw(t, "buckets") {
		b.buckets = append(b.buckets, account.Bucket{ID: int64(n + 2), Name: name.Draw(t, "name"), Description: text.Draw(t, "description"), CreatedAt: when.Draw(t, "created")})
	}
	for _, mid := range rapid.SliceOfNDistinct(id, 0, 5, rapid.ID).Draw(t, "memories") {
		m := account.Memory{ID: mid, Bucket: b.buckets[rapid.IntRange(0, len(b.buckets)-1).Draw(t, "bucket")].ID, Text: filled.Draw(t, "text"),
			Source: text.Draw(t, "source"), Version: rapid.IntRange(1, 4).Draw(t, "version"),
			CreatedAt: when.Draw(t, "created"), UpdatedAt: when.Draw(t, "updated"), EditedAt: when.Draw(t, "edited")}
		if rapid.Bool().Draw(t, "superseded") {
			m.SupersededBy, m.SupersededAt = id.Draw(t, "newer"), when.Draw(t, "supersededAt")
		}
		if rapid.Bool().Draw(t, "merged") {
			m.MergedInto, m.MergedAt = id.Draw(t, "kept"), when.Draw(t, "mergedAt")
		}
		b.memories = append(b.memories, m)
		for v := 1; v < m.Version; v++ {
			b.versions = append(b.versions, account.Version{Memory: mid, Version: v, Text: filled.Draw(t, "text"), CreatedAt: when.Draw(t, "created")})
		}
	}
	ids := rapid.SliceOfNDistinct(id, 0, 4, rapid.ID).Draw(t, "conversations")
	slices.Sort(ids)
	for i, cid := range ids {
		c := chat.Conversation{ID: cid, ExternalID: fmt.Sprint("c", i), Platform: rapid.SampledFrom([]string{"custom", "chatgpt"}).Draw(t, "platform"),
			PlatformName: text.Draw(t, "platform name"), Title: text.Draw(t, "title"), Pinned: rapid.Bool().Draw(t, "pinned"),
			Status:       rapid.SampledFrom([]chat.Status{chat.Active, chat.Excluded, chat.Blocked}).Draw(t, "status"),
			MessageCount: rapid.IntRange(0, 3).Draw(t, "messages"), CreatedAt: when.Draw(t, "created"), UpdatedAt: when.Draw(t, "updated")}
		b.conversations = append(b.conversations, c)
		for n := range c.MessageCount {
			b.messages = append(b.messages, account.Message{Conversation: cid, Message: chat.Message{Index: n, ExternalID: fmt.Sprint("m", n),
				Sender: rapid.SampledFrom([]chat.Sender{chat.Human, chat.Assistant, chat.System, chat.Tool}).Draw(t, "sender"),
				Text:   text.Draw(t, "text"), CreatedAt: when.Draw(t, "created")}})
		}
	}
	return b
}

// small is an account with one of everything.
func small() box {
	const m, c = "0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e07", "0196b2f5-0a77-7d21-b1c4-94e2f7a83d15"
	return box{
		buckets:       []account.Bucket{{ID: 7, Name: "General", Default: true, CreatedAt: noon}},
		memories:      []account.Memory{{ID: m, Bucket: 7, Text: "aisle", Version: 2, CreatedAt: noon, UpdatedAt: noon, EditedAt: noon}},
		versions:      []account.Version{{Memory: m, Version: 1, Text: "window", CreatedAt: noon}},
		conversations: []chat.Conversation{{ID: c, ExternalID: "x", Platform: "custom", Status: chat.Active, MessageCount: 2, CreatedAt: noon, UpdatedAt: noon}},
		messages: []account.Message{
			{Conversation: c, Message: chat.Message{ExternalID: "1", Sender: chat.Human, Text: "Which seat?", CreatedAt: noon}},
			{Conversation: c, Message: chat.Message{Index: 1, ExternalID: "2", Sender: chat.Assistant, CreatedAt: noon}},
		},
	}
}

// An error of the content aborts writing, and the output is not a valid zip.
func TestWriteFails(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := Write(&out, noon, account.Counts{}, failing{small()})
	if !errors.Is(err, errGone) {
		t.Fatalf("Write = %v", err)
	}
	if _, err := Open(bytes.NewReader(out.Bytes()), int64(out.Len()), Limits{}); err == nil {
		t.Error("the incomplete output can be read")
	}
}
