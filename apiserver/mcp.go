package apiserver

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/apiserver/mcp"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const pathMCP = "/mcp"

// newMCP returns the Model Context Protocol endpoint.
func (s *Server) newMCP() *mcp.Endpoint {
	return mcp.New(mcp.Config{
		Memories: s.Memories, Chats: s.Chats, Explain: s.explain, Observe: s.metrics.observeCall, Version: s.Version,
		Permit: func(ctx context.Context, who tenant.Identity, required tenant.Access) (tenant.Identity, error) {
			v, err := s.permit(ctx, who)
			if used, ok := ctx.Value(verdictKey{}).(*httpx.Verdict); ok {
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
		httpx.CountBody(c, tenant.MemoryUseOf(ctx))
		body, err := httpx.ReadJSON(c, defaultBody)
		if err != nil {
			return err
		}
		if err := httpx.RejectUnpairedSurrogates(body); err != nil {
			return err
		}
		waiting, stop := httpx.WhileConnected(context.WithoutCancel(c.UserContext()), c.Context().Conn())
		defer stop()
		used := &httpx.Verdict{Limit: -1}
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
		if used.Limit >= 0 {
			used.SetHeaders(c)
		}
		return s.sendMCP(c, w)
	}
}

// sendMCP sends the endpoint's response.
func (s *Server) sendMCP(c *fiber.Ctx, w *response) error {
	if w.status >= http.StatusBadRequest && strings.HasPrefix(w.header.Get(fiber.HeaderContentType), "text/plain") {
		return s.writeError(c, httpx.NewError(w.status, strings.TrimSpace(w.body.String())))
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
	if after := a.GetHeaders().Get(fiber.HeaderRetryAfter); after != "" && !strings.Contains(text, "retry in") {
		text += " (retry in " + after + " s)"
	}
	if a.RequestID != "" {
		text += " " + a.RequestID
	}
	return text
}
