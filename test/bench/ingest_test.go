package bench

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/chat"
)

// chatMessages is the number of messages per conversation.
const chatMessages = 50

// ingesters is the number of clients that send conversations at the same time.
const ingesters = 4

// conversation returns the request that stores a conversation, and the texts that are embedded for it.
func (b *bench) conversation(id string) (body map[string]any, dense []string) {
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	var sent []map[string]any
	var messages []chat.Message
	for j := range chatMessages {
		id, role, text, when := fmt.Sprint(j), []string{"user", "assistant"}[j%2], b.writer.text(10+b.writer.IntN(60)), at.Add(time.Duration(j)*time.Minute)
		sent = append(sent, map[string]any{"id": id, "role": role, "content": text, "createdAt": when})
		messages = append(messages, chat.Message{ExternalID: id, Sender: []chat.Sender{chat.Human, chat.Assistant}[j%2], Text: text, CreatedAt: when})
	}
	change := chat.Plan(chat.Conversation{}, nil, chat.Upsert{Platform: "bench", Title: "Chat", Messages: messages}, "")
	for _, u := range change.Units()(change.Written()) {
		dense = append(dense, u.Dense)
	}
	return map[string]any{"platform": "bench", "conversation": map[string]any{"id": id, "title": "Chat", "createdAt": at, "messages": sent}}, dense
}

// ingestRounds is the number of rounds, and ingestChats that of the conversations that are sent in each. The speed of a virtual processor varies
// by a tenth between phases of ten seconds: the median of many rounds is more reliable.
const ingestRounds, ingestChats = 15, 16

// ingest compares the rate at which texts of conversations are stored, embedded and indexed with that of embedding the same
// texts, in rounds. Half of the texts are embedded before and half after they are stored.
func (b *bench) ingest() {
	b.Helper()
	own, raw := b.report.row("ingest", "Mnemo", chatMessages), b.report.row("ingest", "embedder", chatMessages)
	own.throughput, raw.throughput = true, true
	rounds, chats := 1, 1
	if *full {
		rounds, chats = ingestRounds, ingestChats
	}
	b.alternate(rounds, own, func(round int) {
		var dense []string
		var bodies []map[string]any
		for i := range chats {
			body, texts := b.conversation(fmt.Sprintf("%d-%d", round, i))
			bodies, dense = append(bodies, body), append(dense, texts...)
		}
		before := b.floor.embed(b.TB, dense[:len(dense)/2])
		began := time.Now()
		var clients sync.WaitGroup
		for part := range slices.Chunk(bodies, (len(bodies)+ingesters-1)/ingesters) {
			clients.Go(func() {
				for _, body := range part {
					b.as("chats").do(b.TB, http.MethodPost, "/api/chat-history/ingest/custom-online", body, nil)
				}
			})
		}
		clients.Wait()
		b.settle("chats")
		own.round(make([]time.Duration, len(dense)), time.Since(began))
		b.idle()
		raw.round(make([]time.Duration, len(dense)), before+b.floor.embed(b.TB, dense[len(dense)/2:]))
	})
}

// embed embeds texts together.
func (f *floor) embed(t testing.TB, texts []string) time.Duration {
	t.Helper()
	began := time.Now()
	if _, err := f.embedder.Embed(t.Context(), texts); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}
