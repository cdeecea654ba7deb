package apiserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
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
	// connectedCheck is the interval of checks for client disconnects.
	connectedCheck = 200 * time.Millisecond
)

// newMCP returns the Model Context Protocol endpoint.
func (s *Server) newMCP() *mcp.Endpoint {
	return mcp.New(mcp.Config{
		Memories: s.Memories, Chats: s.Chats, Explain: s.explain, Observe: s.metrics.observeCall, Version: s.Version,
		Permit: func(ctx context.Context, who tenant.Identity, required tenant.Access) (tenant.Identity, error) {
			v, err := s.permit(ctx, who)
			if used, ok := ctx.Value(verdictKey{}).(*verdict); ok {
				*used = v
			}
			if err == nil {
				err = who.Access.Require(required)
			}
			if err != nil {
				return tenant.Identity{}, err
			}
			return s.actForHeader(ctx, who, required, required == tenant.AccessWrite)
		},
	})
}

// verdictKey is the context key of the rate limiter's *verdict on a message.
type verdictKey struct{}

// serveMCP handles POST /mcp: one message of the Model Context Protocol. Requests
// are authorized like those under /api, but only messages that access the stores
// count toward the rate limit.
func (s *Server) serveMCP(endpoint *mcp.Endpoint) fiber.Handler {
	return func(c *fiber.Ctx) error {
		c.Locals(localRoute, pathMCP)
		if err := s.checkOrigin(c); err != nil {
			return err
		}
		who, err := s.authorize(c.UserContext(), c.Get(fiber.HeaderAuthorization), true)
		if fault.Is(err, fault.Unauthorized) {
			return s.challenge(c, err)
		}
		if err != nil {
			return err
		}
		s.keepOrigin(c, who)
		ctx, err := withUser(c.UserContext(), who, c.Get(headerUser))
		if err != nil {
			return err
		}
		if err := s.begin(ctx, who); err != nil {
			return err
		}
		countBody(c)
		body, err := readJSON(c, defaultBody)
		if err != nil {
			return err
		}
		if at := loneSurrogate(body); at >= 0 {
			return unpairedSurrogate(body, at)
		}
		waiting, stop := whileConnected(context.WithoutCancel(c.UserContext()), c.Context().Conn())
		defer stop()
		used := &verdict{hard: -1}
		work, cancel := context.WithCancelCause(context.WithValue(tenant.WithActor(ctx, who.Actor), verdictKey{}, used))
		defer cancel(nil)
		defer context.AfterFunc(waiting, func() { cancel(mcp.ErrCanceled) })()

		r, err := http.NewRequestWithContext(waiting, c.Method(), pathMCP, bytes.NewReader(body))
		if err != nil {
			return err
		}
		copyHeaders(c, r.Header)
		w := &response{header: http.Header{}, status: http.StatusOK}
		endpoint.Serve(w, r, body, mcp.Caller{Identity: who, Work: work})
		if used.hard >= 0 {
			setRate(c, *used)
		}
		return s.sendMCP(c, w)
	}
}

// sendMCP sends the endpoint's response.
func (s *Server) sendMCP(c *fiber.Ctx, w *response) error {
	if w.status >= http.StatusBadRequest && strings.HasPrefix(w.header.Get(fiber.HeaderContentType), "text/plain") {
		return s.writeError(c, newError(w.status, strings.TrimSpace(w.body.String())))
	}
	for name, values := range w.header {
		c.Set(name, strings.Join(values, ", "))
	}
	return c.Status(w.status).Send(w.body.Bytes())
}

// checkOrigin rejects pages of origins that are neither the server's own nor allowed, as
// protection against DNS rebinding.
func (s *Server) checkOrigin(c *fiber.Ctx) error {
	origin := c.Get(fiber.HeaderOrigin)
	if origin == "" || s.URL != nil && origin == s.URL.Scheme+"://"+s.URL.Host || s.allowsOrigin(c.UserContext(), origin) {
		return nil
	}
	return fault.New(fault.Forbidden, "origin not allowed; the administrator sets the server URL with MNEMO_URL, "+
		"and the origins of other pages with MNEMO_ALLOWED_ORIGINS")
}

// readJSON reads a JSON body of up to limit bytes.
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

// readBody reads a body of up to limit bytes.
func readBody(b *body, limit int64) ([]byte, error) {
	if int64(b.left) > limit {
		return nil, tooLarge(limit)
	}
	raw, err := io.ReadAll(io.LimitReader(b, limit+1))
	if limited, ok := errors.AsType[*fault.Error](err); ok {
		return nil, limited
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, incompleteBody)
	}
	if int64(len(raw)) > limit {
		return nil, tooLarge(limit)
	}
	return raw, nil
}

// copyHeaders copies the request headers, except for the token.
func copyHeaders(c *fiber.Ctx, h http.Header) {
	for name, values := range c.GetReqHeaders() {
		h[http.CanonicalHeaderKey(name)] = values
	}
	h.Del(fiber.HeaderAuthorization)
	// Responses are never streamed, so every client that accepts JSON is served.
	h.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	h.Set(fiber.HeaderAccept, "application/json, text/event-stream")
}

// response is an in-memory http.ResponseWriter.
type response struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header returns the response headers.
func (r *response) Header() http.Header { return r.header }

// WriteHeader sets the status.
func (r *response) WriteHeader(status int) { r.status = status }

// Write adds to the body.
func (r *response) Write(p []byte) (int, error) { return r.body.Write(p) }

// explain returns the error message for an assistant.
func (s *Server) explain(ctx context.Context, err error) string {
	if errors.Is(context.Cause(ctx), mcp.ErrCanceled) {
		return mcp.ErrCanceled.Error()
	}
	a := s.toHTTPError(ctx, err)
	text := a.Message
	if len(a.RejectedIDs) > 0 {
		text += ": " + strings.Join(a.RejectedIDs, ", ")
	}
	if after := a.headers.Get(fiber.HeaderRetryAfter); after != "" && !strings.Contains(text, "retry in") {
		text += " (retry in " + after + " s)"
	}
	if a.RequestID != "" {
		text += " " + a.RequestID
	}
	return text
}

// whileConnected returns a context that is canceled when the client disconnects,
// which fasthttp does not detect while a handler runs.
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

// hungUp peeks whether the peer closed the connection.
func hungUp(raw syscall.RawConn) bool {
	closed := false
	err := raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		closed = n == 0 && err == nil || errors.Is(err, unix.ECONNRESET)
	})
	return err != nil || closed
}
