package apiserver

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/trace"
)

const (
	headerRequestID  = "X-Request-Id"
	headerDegraded   = "X-Degraded"
	degradedVector   = "vector"
	maxRequestID     = 128
	localRoute       = "mnemo.route" // the matched operation's path, for metrics
	localBody        = "mnemo.body"  // the *body a handler reads
	unmatched        = "unmatched"
	wrongMethod      = "this path does not take this method; see the Allow header"
	unexpectedAnswer = "Something went wrong here; it is logged under the request id."
	headersTooLarge  = "the address and headers must be at most 16 KiB together"
)

// edge is around every request: it names it, gives it a deadline, turns its
// error or panic into an answer, closes connections whose body was left
// unread, and counts.
func (s *Server) edge(c *fiber.Ctx) error {
	begin := time.Now()
	id := requestID(c.Get(headerRequestID))
	c.Set(headerRequestID, id)
	ctx, cancel := context.WithTimeout(context.WithValue(c.UserContext(), requestIDKey{}, id), s.RequestTimeout)
	defer cancel()
	if s.Stages != nil {
		ctx = trace.With(ctx, s.Stages)
	}
	ctx, span := startSpan(ctx, c)
	defer span.End()
	c.SetUserContext(ctx)

	if err := s.recovered(c); err != nil {
		if err := s.answerError(c, err); err != nil {
			return err
		}
	}
	closeUnread(c)

	route, ok := c.Locals(localRoute).(string)
	if !ok {
		route = unmatched
	}
	endSpan(span, c, route)
	s.metrics.observe(ctx, c, route, time.Since(begin))
	return nil
}

// recovered runs the rest of the chain and returns its panic as an error.
func (s *Server) recovered(c *fiber.Ctx) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	if ambiguousLength(&c.Request().Header) {
		// Whoever is in front may have read another length: what follows on
		// this connection cannot be trusted to be a request.
		endConnection(c.Context())
		return fault.New(fault.Invalid, "a request takes Content-Length or Transfer-Encoding, not both")
	}
	return c.Next()
}

// ambiguousLength reports whether a request gives its body's length in two
// ways (RFC 9112, 6.1); the parser itself lets chunks win.
func ambiguousLength(h *fasthttp.RequestHeader) bool {
	const chunked = -1
	if h.ContentLength() != chunked {
		return false
	}
	for line := range bytes.Lines(h.RawHeaders()) {
		if name, _, ok := bytes.Cut(line, []byte(":")); ok && strings.EqualFold(string(name), fiber.HeaderContentLength) {
			return true
		}
	}
	return false
}

// refuseMethods answers methods that HTTP does not know before Fiber does, which
// would leave the connection open with a body that nobody read.
func (s *Server) refuseMethods(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		if slices.Contains(fiber.DefaultMethods, string(ctx.Method())) {
			next(ctx)
			return
		}
		endConnection(ctx)
		ctx.SetStatusCode(fiber.StatusMethodNotAllowed)
		ctx.SetContentType(fiber.MIMEApplicationJSON)
		ctx.Response.Header.Set(headerRequestID, requestID(""))
		if allowed := s.methodsOf(string(ctx.Path())); allowed != "" {
			ctx.Response.Header.Set(fiber.HeaderAllow, allowed)
		}
		ctx.SetBodyString(`{"error":"` + wrongMethod + `"}`)
	}
}

// methodsOf lists the methods of a path, for the header Allow: those of the
// pattern that fits it best. Fiber would list those of all that fit.
func (s *Server) methodsOf(path string) string {
	var best []string
	parameters := math.MaxInt
	for pattern, item := range s.api.OpenAPI().Paths {
		n, ok := fits(pattern, path)
		if !ok || n >= parameters {
			continue
		}
		best, parameters = nil, n
		for _, op := range operations(item) {
			best = append(best, op.Method)
		}
	}
	return strings.Join(best, ", ")
}

// fits reports whether a path fits a pattern, and by how many parameters.
func fits(pattern, path string) (parameters int, ok bool) {
	given := strings.Split(path, "/")
	wanted := strings.Split(pattern, "/")
	if len(given) != len(wanted) {
		return 0, false
	}
	for i, part := range wanted {
		switch {
		case strings.HasPrefix(part, "{") && given[i] != "":
			parameters++
		case part != given[i]:
			return 0, false
		}
	}
	return parameters, true
}

// endAfter ends the connection of a request that could not be parsed: nobody
// knows where the next one begins.
func endAfter(answer func(*fasthttp.RequestCtx, error)) func(*fasthttp.RequestCtx, error) {
	return func(ctx *fasthttp.RequestCtx, err error) {
		endConnection(ctx)
		answer(ctx, err)
	}
}

// requestIDKey is the context key of the request id.
type requestIDKey struct{}

// requestID takes the client's id when it can safely be repeated in headers
// and logs, and makes one otherwise.
func requestID(given string) string {
	if given == "" || len(given) > maxRequestID {
		return uuid.NewString()
	}
	for _, r := range given {
		if r <= ' ' || r > '~' {
			return uuid.NewString()
		}
	}
	return given
}

// requestIDOf returns the id of the request a context belongs to.
func requestIDOf(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// named is the huma middleware that tells the edge which route matched.
func named(ctx huma.Context, next func(huma.Context)) {
	fiberCtx(ctx).Locals(localRoute, ctx.Operation().Path)
	next(ctx)
}
