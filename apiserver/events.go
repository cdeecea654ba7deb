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

	// importPoll is the polling interval during an import, and indexingPoll the
	// interval while only embeddings are missing. The state is in PostgreSQL, so
	// any replica can serve the events.
	importPoll   = 500 * time.Millisecond
	indexingPoll = 2 * time.Second
	// heartbeat is the interval of keep-alive comments and token checks.
	heartbeat = 15 * time.Second
	// maxStream is the maximum duration of a stream; clients reconnect.
	maxStream = time.Hour
	// eventTimeout bounds each query and each write.
	eventTimeout = 10 * time.Second
)

type followImportInput struct {
	ImportID      string `path:"importId" doc:"The import's id." example:"0196b2f5-09d2-7e6b-8a41-5c3f9b7d2e60"`
	LastEventID   string `header:"Last-Event-ID"`
	Authorization string `header:"Authorization" hidden:"true"`
}

var docFollowImport = doc{
	id: "followImport", tag: tagChats, summary: "Stream the status of an import as server-sent events",
	description: "The data of each event is the response of GET /api/chat-history/imports/{importId}. The first event is sent immediately, the others on every change. " +
		"The stream ends when the import has failed, or is done and indexed. Lines that start with a colon are keep-alive comments.",
	params: []*huma.Param{{
		Name: headerLastEventID, In: "header", Example: "12", Schema: &huma.Schema{Type: huma.TypeString},
		Description: "The id of the last received event; only later events are sent. 204 if there will be none.",
	}},
	stream: "id: 12\ndata: " + importExample + "\n\n",
	errors: []int{http.StatusNotFound},
}

func (s *Server) followImport(ctx context.Context, who tenant.Identity, in *followImportInput) (*huma.StreamResponse, error) {
	i, err := s.Imports.Get(ctx, who, in.ImportID)
	if err != nil {
		return nil, err
	}
	f := &follower{server: s, who: who, authorization: in.Authorization, current: i}
	// An invalid or outdated id counts as absent.
	if last, err := strconv.ParseInt(in.LastEventID, 10, 64); err == nil && last == i.Version {
		f.sent = last
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		if f.sent == i.Version && i.Settled() {
			ctx.SetStatus(http.StatusNoContent)
			return
		}
		ctx.SetHeader(fiber.HeaderContentType, eventStream)
		ctx.SetHeader(fiber.HeaderCacheControl, "no-cache")
		ctx.SetHeader("X-Accel-Buffering", "no") // disable buffering in nginx
		c := fiberCtx(ctx).Context()
		f.conn = c.Conn()
		c.SetBodyStreamWriter(f.run)
	}}, nil
}

// follower streams the status of an import to one client.
type follower struct {
	server        *Server
	who           tenant.Identity
	authorization string
	conn          net.Conn
	current       importer.Import
	sent          int64 // the version sent last
}

// run sends events until the import is settled, the client disconnects, its token
// is revoked, or the server stops.
func (f *follower) run(w *bufio.Writer) {
	ctx, cancel := context.WithTimeout(context.Background(), maxStream)
	defer cancel()
	heartbeats := time.NewTicker(heartbeat)
	defer heartbeats.Stop()
	// Flushes the headers, so that the client sees the response.
	if f.write(w, ":\n\n") != nil {
		return
	}
	for {
		if f.sent != f.current.Version {
			if f.send(w) != nil {
				return
			}
		}
		if f.current.Settled() {
			return
		}
		pause := importPoll
		if f.current.Status == importer.Done {
			pause = indexingPoll
		}
		select {
		case <-ctx.Done():
			return
		case <-f.server.stopping:
			return
		case <-heartbeats.C:
			if !f.authorized(ctx) || f.write(w, ":\n\n") != nil {
				return
			}
		case <-time.After(pause):
		}
		if !f.refresh(ctx) {
			return
		}
	}
}

// send writes an event with the current status.
func (f *follower) send(w *bufio.Writer) error {
	data, err := json.Marshal(newImportBody(f.current))
	if err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	f.sent = f.current.Version
	return f.write(w, fmt.Sprintf("id: %d\ndata: %s\n\n", f.sent, data))
}

// write sends text to the client and flushes it.
func (f *follower) write(w *bufio.Writer, text string) error {
	if err := f.conn.SetWriteDeadline(time.Now().Add(eventTimeout)); err != nil {
		return err
	}
	if _, err := w.WriteString(text); err != nil {
		return err
	}
	return w.Flush()
}

// refresh reads the status and reports whether the import still exists. While the
// store is unavailable the status does not change.
func (f *follower) refresh(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	i, err := f.server.Imports.Get(ctx, f.who, f.current.ID)
	if err == nil {
		f.current = i
	}
	return !fault.Is(err, fault.NotFound)
}

// authorized reports whether the token of the stream is still valid.
func (f *follower) authorized(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	who, err := f.server.identify(ctx, f.authorization, false)
	return !fault.Is(err, fault.Unauthorized) && !who.Suspended
}
