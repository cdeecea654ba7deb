package apiserver

import (
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

	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/trace"
)

const (
	headerRequestID  = "X-Request-Id"
	headerDegraded   = "X-Degraded"
	headerImport     = "X-Import-Status"
	degradedVector   = "vector"
	maxRequestID     = 128
	localRoute       = "mnemo.route" // the matched route pattern, for metrics
	localBody        = "mnemo.body"  // the request *body
	localReads       = "mnemo.reads" // whether the request changes nothing
	unmatched        = "unmatched"
	methodNotAllowed = "method not allowed; see the Allow header"
	internalError    = "internal error; details are logged under the request ID"
	headersTooLarge  = "URL and headers must be at most 16 KiB in total"
)

// middleware wraps every request. It assigns the request ID and deadline, turns
// errors and panics into responses, closes connections whose body was not fully
// read, and records traces and metrics.
func (s *Server) middleware(c *fiber.Ctx) error {
	begin := time.Now()
	id := requestID(c.Get(headerRequestID))
	c.Set(headerRequestID, id)
	if s.URL != nil && s.URL.Scheme == "https" {
		c.Set(fiber.HeaderStrictTransportSecurity, "max-age=31536000")
	}
	ctx, cancel := context.WithTimeout(context.WithValue(c.UserContext(), requestIDKey{}, id), s.RequestTimeout)
	defer cancel()
	if s.Stages != nil {
		ctx = trace.With(ctx, s.Stages)
	}
	var failed trace.Degraded
	ctx = trace.WithDegraded(ctx, &failed)
	ctx, metered := withMetered(ctx)
	ctx, span := startSpan(ctx, c)
	defer span.End()
	use, work := s.memory.NewMemoryUse(), &work{bulk: isBulk(c)}
	defer work.end()
	c.SetUserContext(context.WithValue(tenant.WithMemoryUse(ctx, use), workKey{}, work))
	held := false
	defer func() {
		if !held {
			use.Release()
		}
	}()

	err := s.next(c)
	if b := requestBody(c); b != nil && b.silent {
		err = fiber.ErrRequestTimeout
	}
	if err != nil {
		if err := s.handleError(c, err); err != nil {
			return err
		}
	}
	setDegraded(c, failed.Stages())
	closeUnread(c)
	held = s.holdResponse(c, use)
	s.countRequest(ctx, c, metered)

	route, ok := c.Locals(localRoute).(string)
	if !ok {
		route = unmatched
	}
	endSpan(span, c, route)
	s.metrics.observe(ctx, c, route, time.Since(begin))
	return nil
}

// next runs the rest of the chain and returns a panic as an error.
func (s *Server) next(c *fiber.Ctx) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	if err := checkHead(&c.Request().Header); err != nil {
		closeConnection(c.Context()) // the start of the next request is unknown
		return err
	}
	if !keepUserEncoded(c) && hasEncodedSlash(&c.Request().Header) {
		return fiber.ErrNotFound
	}
	if s.cors(c) {
		return nil
	}
	return c.Next()
}

// rejectUnknownMethods answers non-standard methods before Fiber does, because
// Fiber would keep the connection open with an unread body.
func (s *Server) rejectUnknownMethods(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		if slices.Contains(fiber.DefaultMethods, string(ctx.Method())) {
			next(ctx)
			return
		}
		closeConnection(ctx)
		ctx.SetStatusCode(fiber.StatusMethodNotAllowed)
		ctx.SetContentType(fiber.MIMEApplicationJSON)
		ctx.Response.Header.Set(headerRequestID, requestID(""))
		if allowed := s.allowedMethods(string(ctx.Path())); allowed != "" {
			ctx.Response.Header.Set(fiber.HeaderAllow, allowed)
		}
		ctx.SetBodyString(`{"error":"` + methodNotAllowed + `"}`)
	}
}

// allowedMethods returns the Allow header of a path: the methods of the most
// specific matching pattern. Fiber would list the methods of all matches.
func (s *Server) allowedMethods(path string) string {
	var best []string
	parameters := math.MaxInt
	for pattern, item := range s.api.OpenAPI().Paths {
		n, ok := matchPattern(pattern, path)
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

// matchPattern reports whether a path matches a pattern, and with how many parameters.
func matchPattern(pattern, path string) (parameters int, ok bool) {
	segments := strings.Split(path, "/")
	parts := strings.Split(pattern, "/")
	if len(segments) != len(parts) {
		return 0, false
	}
	for i, part := range parts {
		switch {
		case strings.HasPrefix(part, "{") && segments[i] != "":
			parameters++
		case part != segments[i]:
			return 0, false
		}
	}
	return parameters, true
}

// closeAfter closes the connection after a request that cannot be parsed: the
// start of the next request is unknown.
func closeAfter(respond func(*fasthttp.RequestCtx, error)) func(*fasthttp.RequestCtx, error) {
	return func(ctx *fasthttp.RequestCtx, err error) {
		closeConnection(ctx)
		respond(ctx, err)
	}
}

// requestIDKey is the context key of the request ID.
type requestIDKey struct{}

// requestID returns the client's request ID if it is safe to repeat in headers
// and logs, and a new one otherwise.
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

// requestIDOf returns the request ID of a context.
func requestIDOf(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// setRoute is the huma middleware that records the matched route for middleware.
func setRoute(ctx huma.Context, next func(huma.Context)) {
	fiberCtx(ctx).Locals(localRoute, ctx.Operation().Path)
	next(ctx)
}

// setDegraded adds stages to X-Degraded.
func setDegraded(c *fiber.Ctx, stages []string) {
	if len(stages) == 0 {
		return
	}
	if already := string(c.Response().Header.Peek(headerDegraded)); already != "" {
		stages = append([]string{already}, stages...)
	}
	c.Set(headerDegraded, strings.Join(stages, ", "))
}
