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

	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	eventStream       = "text/event-stream"
	headerLastEventID = "Last-Event-ID"

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
		"The stream ends when the import has failed, or is done and indexed. Lines that start with a colon are keep-alive comments. " +
		"A user can have 10 streams open at a server; further requests return 429.",
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
	f := &follower{server: s, authorization: in.Authorization}
	// An invalid or outdated id counts as absent.
	if last, err := strconv.ParseInt(in.LastEventID, 10, 64); err == nil && last == i.Version {
		f.sent = last
	}
	if f.sent == i.Version && i.Settled() {
		return &huma.StreamResponse{Body: func(ctx huma.Context) { ctx.SetStatus(http.StatusNoContent) }}, nil
	}
	if f.feed, err = s.feeds.join(who, i); err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		ctx.SetHeader(fiber.HeaderContentType, eventStream)
		ctx.SetHeader(fiber.HeaderCacheControl, "no-cache")
		ctx.SetHeader("X-Accel-Buffering", "no") // disable buffering in nginx
		c := httpx.FiberContext(ctx).Context()
		f.conn = c.Conn()
		c.SetBodyStreamWriter(f.run)
	}}, nil
}

// follower streams the status of an import to one client.
type follower struct {
	server        *Server
	feed          *feed
	authorization string
	conn          net.Conn
	sent          int64 // the version sent last
}

// run sends events until the import is settled, the client disconnects, its token
// is revoked, or the server stops.
func (f *follower) run(w *bufio.Writer) {
	defer f.server.feeds.leave(f.feed)
	ctx, cancel := context.WithTimeout(context.Background(), maxStream)
	defer cancel()
	heartbeats := time.NewTicker(heartbeat)
	defer heartbeats.Stop()
	// Flushes the headers, so that the client sees the response.
	if f.write(w, ":\n\n") != nil {
		return
	}
	for {
		current, deleted, changed := f.server.feeds.state(f.feed)
		if deleted {
			return
		}
		if f.sent != current.Version && f.send(w, current) != nil || current.Settled() {
			return
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
		case <-changed:
		}
	}
}

// send writes an event with a status.
func (f *follower) send(w *bufio.Writer, i importer.Import) error {
	data, err := json.Marshal(newImportBody(i))
	if err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	f.sent = i.Version
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

// authorized reports whether the token of the stream is still valid.
func (f *follower) authorized(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	who, err := f.server.identify(ctx, f.authorization, false)
	return !fault.Is(err, fault.Unauthorized) && !who.Suspended
}
