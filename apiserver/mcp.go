package apiserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gofiber/fiber/v2"
	"golang.org/x/sys/unix"

	"github.com/mnemo-dev/mnemo/apiserver/mcp"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	pathMCP = "/mcp"
	// connectedCheck is how often it is looked whether a client still waits.
	connectedCheck = 200 * time.Millisecond
)

// newMCP makes the Model Context Protocol's endpoint.
func (s *Server) newMCP() *mcp.Endpoint {
	return mcp.New(mcp.Config{
		Memories: s.Memories, Chats: s.Chats, Explain: s.explain, Observe: s.metrics.observeCall, Version: s.Version,
		Permit: func(ctx context.Context, who tenant.Identity) error {
			v, err := s.permit(ctx, who)
			if used, ok := ctx.Value(verdictKey{}).(*verdict); ok {
				*used = v
			}
			return err
		},
	})
}

// verdictKey is the context key of the *verdict a message got.
type verdictKey struct{}

// serveMCP answers POST /mcp: one message of the Model Context Protocol. A
// request passes what those under /api pass, but the rate is asked only by what
// asks the stores.
func (s *Server) serveMCP(endpoint *mcp.Endpoint) fiber.Handler {
	return func(c *fiber.Ctx) error {
		c.Locals(localRoute, pathMCP)
		if err := s.checkOrigin(c); err != nil {
			return err
		}
		who, err := s.admit(c.UserContext(), c.Get(fiber.HeaderAuthorization), true)
		if fault.Is(err, fault.Unauthorized) {
			return s.challenge(c, err)
		}
		if err != nil {
			return err
		}
		body, err := readJSON(c, defaultBody)
		if err != nil {
			return err
		}
		waiting, stop := whileConnected(context.WithoutCancel(c.UserContext()), c.Context().Conn())
		defer stop()
		used := &verdict{hard: -1}
		work, cancel := context.WithCancelCause(context.WithValue(c.UserContext(), verdictKey{}, used))
		defer cancel(nil)
		defer context.AfterFunc(waiting, func() { cancel(mcp.ErrCanceled) })()

		r, err := http.NewRequestWithContext(waiting, c.Method(), pathMCP, bytes.NewReader(body))
		if err != nil {
			return err
		}
		copyHeaders(c, r.Header)
		w := &response{header: http.Header{}, status: http.StatusOK}
		endpoint.Serve(w, r, mcp.Caller{Identity: who, Work: work})
		if used.hard >= 0 {
			setRate(c, *used)
		}
		return s.answerMCP(c, w)
	}
}

// answerMCP sends what the endpoint answered.
func (s *Server) answerMCP(c *fiber.Ctx, w *response) error {
	if w.status >= http.StatusBadRequest && strings.HasPrefix(w.header.Get(fiber.HeaderContentType), "text/plain") {
		return s.writeError(c, &Error{status: w.status, Message: strings.TrimSpace(w.body.String())})
	}
	for name, values := range w.header {
		c.Set(name, strings.Join(values, ", "))
	}
	return c.Status(w.status).Send(w.body.Bytes())
}

// checkOrigin refuses pages of other sites: a browser that resolves their name
// to this server would let them speak to it (DNS rebinding).
func (s *Server) checkOrigin(c *fiber.Ctx) error {
	origin := c.Get(fiber.HeaderOrigin)
	if origin == "" || slices.Contains(s.origins(), origin) {
		return nil
	}
	return fault.New(fault.Forbidden, "pages of this origin may not use the server; whoever operates it sets its address with MNEMO_URL")
}

// origins are those whose pages may speak to the server: its own.
func (s *Server) origins() []string {
	if s.URL == nil {
		return nil
	}
	return []string{s.URL.Scheme + "://" + s.URL.Host}
}

// readJSON reads a JSON body of at most limit bytes.
func readJSON(c *fiber.Ctx, limit int64) ([]byte, error) {
	b := requestBody(c)
	if b == nil {
		return nil, fault.New(fault.Invalid, "the body is required")
	}
	if !isJSON(c.Get(fiber.HeaderContentType)) || c.Get(fiber.HeaderContentEncoding) != "" {
		return nil, fault.New(fault.Unsupported, "the body must be JSON (Content-Type: application/json), not compressed")
	}
	return readBody(b, limit)
}

// readBody reads a body of at most limit bytes.
func readBody(b *body, limit int64) ([]byte, error) {
	if int64(b.left) > limit {
		return nil, tooLarge(limit)
	}
	raw, err := io.ReadAll(io.LimitReader(b, limit+1))
	if err != nil {
		return nil, fault.New(fault.Invalid, "the body could not be read to its end")
	}
	if int64(len(raw)) > limit {
		return nil, tooLarge(limit)
	}
	return raw, nil
}

// copyHeaders hands a request's headers on; its token stays here.
func copyHeaders(c *fiber.Ctx, h http.Header) {
	for name, values := range c.GetReqHeaders() {
		h[http.CanonicalHeaderKey(name)] = values
	}
	h.Del(fiber.HeaderAuthorization)
	// Answers are never streams: who takes JSON can take them.
	h.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	h.Set(fiber.HeaderAccept, "application/json, text/event-stream")
}

// response is an http.ResponseWriter in memory.
type response struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header returns what will be sent.
func (r *response) Header() http.Header { return r.header }

// WriteHeader sets the status.
func (r *response) WriteHeader(status int) { r.status = status }

// Write adds to the body.
func (r *response) Write(p []byte) (int, error) { return r.body.Write(p) }

// explain is the sentence an assistant is told of an error.
func (s *Server) explain(ctx context.Context, err error) string {
	if errors.Is(context.Cause(ctx), mcp.ErrCanceled) {
		return mcp.ErrCanceled.Error()
	}
	a := s.answerFor(ctx, err)
	text := a.Message
	if len(a.RejectedIDs) > 0 {
		text += ": " + strings.Join(a.RejectedIDs, ", ")
	}
	if after := a.headers.Get(fiber.HeaderRetryAfter); after != "" && !strings.Contains(text, "try again in") {
		text += " (in " + after + " s)"
	}
	if a.RequestID != "" {
		text += " It is " + a.RequestID + "."
	}
	return text
}

// whileConnected returns a context that ends when the client hangs up, which
// fasthttp does not look for while a request is handled.
func whileConnected(ctx context.Context, c net.Conn) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if ours, ok := c.(*conn); ok {
		c = ours.Conn
	}
	socket, ok := c.(syscall.Conn)
	if !ok {
		return ctx, cancel
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return ctx, cancel
	}
	go func() {
		tick := time.NewTicker(connectedCheck)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if hungUp(raw) {
					cancel()
					return
				}
			}
		}
	}()
	return ctx, cancel
}

// hungUp looks, without taking anything away, whether a connection's other side
// has closed it.
func hungUp(raw syscall.RawConn) bool {
	gone := false
	err := raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		gone = n == 0 && err == nil || errors.Is(err, unix.ECONNRESET)
	})
	return err != nil || gone
}
