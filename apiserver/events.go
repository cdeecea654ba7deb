package apiserver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	eventStream       = "text/event-stream"
	headerLastEventID = "Last-Event-ID"

	// importPoll is how often a running import is looked at, and indexingPoll
	// one that only embeddings are missing of. The state is in PostgreSQL, so it
	// does not matter which replica imports and which one tells.
	importPoll   = 500 * time.Millisecond
	indexingPoll = 2 * time.Second
	// beat is how often a stream without news shows that it lives, and asks
	// whether its token does.
	beat = 15 * time.Second
	// maxStream is how long a stream lasts: its client goes on with another one.
	maxStream = time.Hour
	// eventTimeout bounds looking, and telling, once.
	eventTimeout = 10 * time.Second
)

type followImportInput struct {
	ImportID      string `path:"importId" doc:"The import's id." example:"0196b2f5-09d2-7e6b-8a41-5c3f9b7d2e60"`
	LastEventID   string `header:"Last-Event-ID"`
	Authorization string `header:"Authorization" hidden:"true"`
}

var docFollowImport = doc{
	id: "followImport", tag: tagChats, summary: "Follow an import as server-sent events",
	description: "Each event's data is what GET /api/chat-history/imports/{importId} answers then; one comes at once and with every change. " +
		"The stream ends when the import is done and everything indexed, or has failed. Lines that begin with a colon only show that it lives.",
	params: []*huma.Param{{
		Name: headerLastEventID, In: "header", Example: "12", Schema: &huma.Schema{Type: huma.TypeString},
		Description: "The id of the last event that arrived: only what came after it is told. 204 when nothing ever will.",
	}},
	stream: "id: 12\ndata: " + importExample + "\n\n",
	errors: []int{http.StatusNotFound},
}

func (s *Server) followImport(ctx context.Context, who tenant.Identity, in *followImportInput) (*huma.StreamResponse, error) {
	i, err := s.Imports.Get(ctx, who, in.ImportID)
	if err != nil {
		return nil, err
	}
	f := &follower{server: s, who: who, authorization: in.Authorization, now: i}
	// What cannot be read, or is of another time, means that nothing arrived.
	if last, err := strconv.ParseInt(in.LastEventID, 10, 64); err == nil && last == i.Version {
		f.told = last
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		if f.told == i.Version && i.Settled() {
			ctx.SetStatus(http.StatusNoContent)
			return
		}
		ctx.SetHeader(fiber.HeaderContentType, eventStream)
		ctx.SetHeader(fiber.HeaderCacheControl, "no-cache")
		ctx.SetHeader("X-Accel-Buffering", "no") // an ingress must not hold it back
		c := fiberCtx(ctx).Context()
		f.conn = c.Conn()
		c.SetBodyStreamWriter(f.run)
	}}, nil
}

// follower tells one client how far an import is.
type follower struct {
	server        *Server
	who           tenant.Identity
	authorization string
	conn          net.Conn
	now           importer.Import
	told          int64 // the version told last
}

// run tells until the import is settled, the client goes away, its token dies,
// or the server stops.
func (f *follower) run(w *bufio.Writer) {
	ctx, cancel := context.WithTimeout(context.Background(), maxStream)
	defer cancel()
	beats := time.NewTicker(beat)
	defer beats.Stop()
	// The headers go with the first text: the client knows that it is heard.
	if f.write(w, ":\n\n") != nil {
		return
	}
	for {
		if f.told != f.now.Version {
			if f.tell(w) != nil {
				return
			}
		}
		if f.now.Settled() {
			return
		}
		pause := importPoll
		if f.now.Status == importer.Done {
			pause = indexingPoll
		}
		select {
		case <-ctx.Done():
			return
		case <-f.server.stopping:
			return
		case <-beats.C:
			if !f.welcome(ctx) || f.write(w, ":\n\n") != nil {
				return
			}
		case <-time.After(pause):
		}
		if !f.look(ctx) {
			return
		}
	}
}

// tell writes an event with what is known now.
func (f *follower) tell(w *bufio.Writer) error {
	data, err := json.Marshal(newImportBody(f.now))
	if err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	f.told = f.now.Version
	return f.write(w, fmt.Sprintf("id: %d\ndata: %s\n\n", f.told, data))
}

// write sends a text to the client at once.
func (f *follower) write(w *bufio.Writer, text string) error {
	if err := f.conn.SetWriteDeadline(time.Now().Add(eventTimeout)); err != nil {
		return err
	}
	if _, err := w.WriteString(text); err != nil {
		return err
	}
	return w.Flush()
}

// look asks how far the import is, and reports whether it is still there. While
// the store is away there is no news.
func (f *follower) look(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	i, err := f.server.Imports.Get(ctx, f.who, f.now.ID)
	if err == nil {
		f.now = i
	}
	return !fault.Is(err, fault.NotFound)
}

// welcome reports whether the token that opened the stream still would.
func (f *follower) welcome(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	who, err := f.server.identify(ctx, f.authorization, false)
	return !fault.Is(err, fault.Unauthorized) && !who.Suspended
}
