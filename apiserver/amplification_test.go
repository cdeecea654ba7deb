package apiserver

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
)

const (
	// longMessage is the size of the only message of the conversation $c, which is excluded, so that nothing embeds it. foundMessage is
	// that of a message that searches find, and longMemories the number of memories of the largest size.
	longMessage, foundMessage, longMemories = 2 << 20, 256 << 10, 4

	// maxSent is the most bytes that a response has, if it is not among wholeConversation, and maxRead those that the server
	// reads from PostgreSQL to make it, beyond twice its size: the vectors of the units of the account, and the texts of a
	// search's candidates.
	maxSent, maxRead = 384 << 10, 3 << 19
	// allocated and allocatedPerByte bound the memory that a request allocates, in bytes and in bytes for each byte read or sent.
	allocated, allocatedPerByte = 24 << 20, 24
)

// wholeConversation are the routes whose response contains all messages.
var wholeConversation = map[string]bool{"GET /api/chat-history/conversation": true, "GET /api/export": true, "POST /account/export": true}

// large are the routes with a large response whose size is a constant: the contract.
var large = map[string]bool{"GET /openapi.json": true, "GET /docs/:file": true}

// readsConversation are the routes that read all messages of a conversation for a part of them, within the limit of the
// memory of requests (TestConversationsAreReadWithinTheBudget).
var readsConversation = map[string]bool{"GET /chats/:id": true, "POST /api/chat-history/ingest/custom-online": true, "tool get_full_conversation": true,
	"template mnemo://conversations/{id}": true, "template mnemo://conversations/{id}{?cursor}": true}

// TestNoRouteAmplifies calls every route, MCP tool and resource in an account with the largest items. The bytes of the
// response, those read from PostgreSQL and those allocated must be bounded.
//
// It does not run in parallel with other tests, which would allocate memory and read from the same server.
func TestNoRouteAmplifies(t *testing.T) {
	d := postgrestest.Create(t)
	var read atomic.Int64
	d.AppURL = countedProxy(t, d.AppURL, &read)
	x := newIsolationServerOn(t, openUnindexedIn(t, d))
	owner := x.participant(t, "large", "alice", true)
	x.enlarge(t, owner)
	for phase := range 3 {
		for _, route := range x.everyRoute(t, owner) {
			if len(isolationCases[route]) == 0 {
				t.Errorf("%s has no case in isolationCases", route)
			}
			for _, r := range isolationCases[route] {
				if phaseOf(route) == phase {
					x.measure(t, owner, route, r, &read)
				}
			}
		}
	}
}

// phaseOf returns when a route is called: first those that delete nothing, and last those that end the user's session.
func phaseOf(route string) int {
	switch {
	case lastCases[route]:
		return 2
	case strings.HasPrefix(route, "DELETE ") || strings.HasSuffix(route, "delete"):
		return 1
	}
	return 0
}

// measure sends a request and checks what it costs. Background work may add to it, so an excess counts if it repeats.
func (x *isolationServer) measure(t *testing.T, owner *participant, route string, r isolationRequest, read *atomic.Int64) {
	t.Helper()
	var excess string
	for range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := read.Load()
		sent := int64(len(x.send(t, owner, route, r, owner.secrets).raw))
		fetched := read.Load() - start
		runtime.ReadMemStats(&after)
		alloc := int64(after.TotalAlloc - before.TotalAlloc)
		whole := int64(0)
		if wholeConversation[route] || readsConversation[route] {
			whole = longMessage + longMessage/8
		}
		t.Logf("%s %s: sent %d KiB, read %d KiB, allocated %d KiB", route, r.path+r.body, sent>>10, fetched>>10, alloc>>10)
		switch {
		case sent > maxSent && !wholeConversation[route] && !large[route]:
			excess = fmt.Sprintf("the response has %d bytes, want at most %d", sent, maxSent)
		case fetched > maxRead+2*sent+whole:
			excess = fmt.Sprintf("%d bytes are read from PostgreSQL for a response of %d", fetched, sent)
		case alloc > allocated+allocatedPerByte*(sent+fetched):
			excess = fmt.Sprintf("%d bytes are allocated to send %d and read %d", alloc, sent, fetched)
		default:
			return
		}
	}
	t.Errorf("%s %s %s: %s", route, r.path, r.body, excess)
}

// enlarge adds the largest items to the account of a participant, and waits until all units have vectors.
func (x *isolationServer) enlarge(t *testing.T, m *participant) {
	t.Helper()
	line := m.secrets["$q"] + " is on the shelf of the kitchen. "
	text := func(i, size int) string {
		return fmt.Sprintf("%d. ", i) + strings.Repeat(line, (size-10)/len(line))
	}
	for i := range longMemories {
		x.ok(t, m.token, "POST", "/api/memory", `{"text":"`+text(i, memory.MaxText)+`","bucketId":`+m.secrets["$b"]+`}`)
	}
	x.ok(t, m.token, "POST", "/api/v2/memory/update", `{"memoryId":"`+m.secrets["$m"]+`","text":"`+text(longMemories, memory.MaxText)+`"}`)
	x.ok(t, m.token, "PATCH", "/api/chat-history/chats", `{"ids":["`+m.secrets["$c"]+`"],"excluded":true}`)
	at := time.Date(2025, 5, 9, 14, 30, 0, 0, time.UTC)
	for external, size := range map[string]int{m.secrets["$e"]: longMessage, "found": foundMessage} {
		if _, err := x.stores.db.Conversations().Upsert(t.Context(), m.Scope, chat.Upsert{
			ExternalID: external, Platform: m.secrets["$n"], PlatformName: m.secrets["$n"], Title: m.secrets["$t"], CreatedAt: at,
			Messages: []chat.Message{{ExternalID: "long", Sender: chat.Human, Text: text(0, size), CreatedAt: at}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := pgx.Connect(t.Context(), x.stores.ownerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for missing := 1; missing > 0; <-tick.C { // embedding hundreds of units may need longer than eventually waits
		if err := conn.QueryRow(t.Context(), "select count(*) from units where embedding is null and active").Scan(&missing); err != nil {
			t.Fatal(err)
		}
	}
}

// countedProxy returns the URL of a proxy of a database, which counts what the database sends.
func countedProxy(t *testing.T, address string, read *atomic.Int64) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	target := u.Host
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				_ = client.Close()
				continue
			}
			go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
			go func() { _, _ = io.Copy(countingWriter{client, read}, server); _ = client.Close() }()
		}
	}()
	u.Host = l.Addr().String()
	return u.String()
}

// countingWriter counts what is written.
type countingWriter struct {
	io.Writer

	n *atomic.Int64
}

// Write counts before it writes: the reader of the last bytes may look at the number.
func (w countingWriter) Write(p []byte) (int, error) {
	w.n.Add(int64(len(p)))
	return w.Writer.Write(p)
}
