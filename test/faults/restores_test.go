package faults_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/mnemo-dev/mnemo/api/client"
	content "github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/archive"
	"github.com/mnemo-dev/mnemo/internal/chat"
)

// generated is the content of an export. The ids depend only on the number of the restore of the account, so several
// users have objects with the same ids.
type generated struct {
	*lane
	restore  int
	buckets  []content.Bucket
	memories []content.Memory
	chats    []chat.Conversation
	messages []content.Message
	invalid  bool // has lines that a restore must skip
}

func each[T any](list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range list {
			if !yield(v, nil) {
				return
			}
		}
	}
}

func (g *generated) Buckets() iter.Seq2[content.Bucket, error]          { return each(g.buckets) }
func (g *generated) Memories() iter.Seq2[content.Memory, error]         { return each(g.memories) }
func (g *generated) Versions() iter.Seq2[content.Version, error]        { return each[content.Version](nil) }
func (g *generated) Conversations() iter.Seq2[chat.Conversation, error] { return each(g.chats) }
func (g *generated) Messages() iter.Seq2[content.Message, error]        { return each(g.messages) }

var exportedAt = time.Date(2026, 4, 1, 8, 0, 0, 0, time.UTC)

func (g *generated) id(kind string, n int) string {
	return uuid.NewSHA1(uuid.NameSpaceOID, fmt.Append(nil, kind, g.restore, "-", n)).String()
}

// generate returns an export with merges and the objects that are in the account after its restore.
func (l *lane) generate() (*generated, *model) {
	l.restores++
	g, m := &generated{lane: l, restore: l.restores, invalid: l.rand.IntN(2) == 0}, newModel()
	bucket := l.newKey()
	m.buckets[bucket] = &object[string]{key: bucket, id: "2", is: []string{bucket}}
	g.buckets = []content.Bucket{
		{ID: 1, Name: "General", Default: true, CreatedAt: exportedAt}, {ID: 2, Name: bucket, CreatedAt: exportedAt},
	}
	listed, merged := 1+l.rand.IntN(4), l.rand.IntN(6)
	for n := range listed + merged {
		g.memory(m, n, n >= listed, bucket)
	}
	if g.invalid {
		g.memories = slices.Insert(g.memories, l.rand.IntN(listed+1), content.Memory{
			ID: g.id("invalid", 0), Bucket: 1, Version: 1, CreatedAt: exportedAt, UpdatedAt: exportedAt, EditedAt: exportedAt,
		})
	}
	ids := []string{g.id("conversation", 0), g.id("conversation", 1), g.id("conversation", 2)}
	slices.Sort(ids)
	for _, id := range ids[:1+l.rand.IntN(2)] {
		g.chat(m, id)
	}
	if g.invalid {
		g.chats = append(g.chats, chat.Conversation{
			ID: ids[2], Platform: "custom", Status: chat.Active, CreatedAt: exportedAt, UpdatedAt: exportedAt,
		})
	}
	return g, m
}

// memory adds a memory. One that is merged follows the one that was kept.
func (g *generated) memory(m *model, n int, merged bool, bucket string) {
	key := g.newKey()
	o := content.Memory{
		ID: g.id("memory", n), Bucket: int64(1 + n%2), Text: g.text(key), Version: 1,
		CreatedAt: exportedAt, UpdatedAt: exportedAt, EditedAt: exportedAt,
	}
	if merged { // often a chain
		o.MergedInto, o.MergedAt = g.id("memory", n-1-g.rand.IntN(min(n, 2))), exportedAt
	}
	g.memories = append(g.memories, o)
	state := memoryState{Text: o.Text, Version: 1, Merged: o.MergedInto, Bucket: []string{"", bucket}[n%2]}
	m.memories[key] = &object[memoryState]{key: key, id: o.ID, is: []memoryState{state}}
}

// chat adds a conversation such as those that are sent online.
func (g *generated) chat(m *model, id string) {
	key := g.newKey()
	c := chat.Conversation{
		ID: id, ExternalID: key, Platform: "custom", Title: "Talk about " + key + " " + g.owner, Status: chat.Active,
		MessageCount: 1 + g.rand.IntN(3), CreatedAt: exportedAt, UpdatedAt: exportedAt,
	}
	texts := make([]string, c.MessageCount)
	for n := range texts {
		texts[n] = g.text(key)
		g.messages = append(g.messages, content.Message{Conversation: id, Message: chat.Message{
			Index: n, ExternalID: fmt.Sprint(key, "-", n), Sender: chat.Human, Text: texts[n], CreatedAt: exportedAt,
		}})
	}
	g.chats = append(g.chats, c)
	state := chatState{Title: c.Title, Messages: strings.Join(texts, "\n")}
	m.chats[key] = &object[chatState]{key: key, id: id, is: []chatState{state}}
}

// file returns the export.
func (g *generated) file() []byte {
	counts := content.Counts{
		Buckets: int64(len(g.buckets)), Memories: int64(len(g.memories)),
		Conversations: int64(len(g.chats)), Messages: int64(len(g.messages)),
	}
	var out bytes.Buffer
	if err := archive.Write(&out, exportedAt, counts, g); err != nil {
		panic(err) // it is written to memory
	}
	return out.Bytes()
}

// restoreExport restores a generated export, which requires an empty account, and waits until it is restored.
func (l *lane) restoreExport(ctx context.Context) {
	if len(l.memories)+len(l.chats)+len(l.buckets) > 0 && !l.eraseUser(ctx) {
		return
	}
	if !l.isEmpty() { // a late request may still store something
		l.lost = true
		return
	}
	g, m := l.generate()
	contentType, body := form("export.zip", g.file(), g.invalid)
	api, id := l.api(), ""
	how := l.do(ctx, "restore export", slices.Concat(keysOf(m.memories), keysOf(m.chats)), func(ctx context.Context) error {
		answer, err := api.ImportFile(ctx, nil, contentType, body)
		if err == nil {
			id = answer.Body.ImportID
		}
		return err
	})
	adopt(l.memories, m.memories, how, "memory.restore")
	adopt(l.chats, m.chats, how, "conversation.store")
	adopt(l.buckets, m.buckets, how, "bucket.create")
	l.lost = how == unknown || how == acknowledged && !l.awaitRestore(ctx, id, len(m.chats), g.invalid)
}

// isEmpty reports whether the account certainly has no objects.
func (m *model) isEmpty() bool { return allGone(m.memories) && allGone(m.chats) && allGone(m.buckets) }

func allGone[S comparable](objects map[string]*object[S]) bool {
	for _, o := range objects {
		if !o.gone() {
			return false
		}
	}
	return true
}

func keysOf[S comparable](objects map[string]*object[S]) (keys []string) {
	for _, o := range certain(objects) {
		keys = append(keys, o.key)
	}
	return keys
}

// adopt adds the objects of a restore with an outcome to the account.
func adopt[S comparable](to, from map[string]*object[S], how outcome, verb string) {
	for key, o := range from {
		next := o.is[0]
		o.is, o.late = make([]S, 1), how == unknown
		o.audited(verb, how)
		o.change(how, next)
		to[key] = o
	}
}

// awaitRestore waits until an export is restored. Otherwise the import continues after the load.
func (l *lane) awaitRestore(ctx context.Context, id string, chats int, skips bool) bool {
	for ctx.Err() == nil {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		answer, err := l.api().GetImport(call, id)
		cancel()
		switch {
		case client.StatusOf(err) == http.StatusNotFound:
			l.violate(lost, l.String(), id, "the import does not exist")
			return false
		case err == nil && answer.Body.Status == client.ImportStatusFailed:
			l.violate(ledger, l.String(), id, "the restore failed: %+v", answer.Body.Errors)
			return false
		case err == nil && answer.Body.Status == client.ImportStatusDone:
			if n := len(answer.Body.Warnings); int(answer.Body.Imported) != chats || (n > 0) != skips {
				l.violate(ledger, l.String(), id, "the restore has the result %+v, want %d conversations, skipped lines: %t",
					answer.Body, chats, skips)
			}
			return true
		}
		l.pause(ctx, 100*time.Millisecond)
	}
	return false
}

// form returns a form with a file, which may have lines to skip.
func form(name string, data []byte, skipInvalid bool) (contentType string, body *bytes.Buffer) {
	body = &bytes.Buffer{}
	w := multipart.NewWriter(body)
	err := w.WriteField("skipInvalid", strconv.FormatBool(skipInvalid))
	if file, e := w.CreateFormFile("file", name); err == nil && e == nil {
		_, err = file.Write(data)
	}
	if err != nil || w.Close() != nil {
		panic("it is written to memory")
	}
	return w.FormDataContentType(), body
}
