package apiserver

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/trace"
)

const (
	headerDegraded = "X-Degraded"
	headerImport   = "X-Import-Status"
	degradedVector = "vector"
	localRoute     = "mnemo.route" // the matched route pattern, for metrics
	localReads     = "mnemo.reads" // whether the request changes nothing
	unmatched      = "unmatched"
)

// middleware wraps every request. It assigns the request ID and deadline, turns
// errors and panics into responses, closes connections whose body was not fully
// read, and records traces and metrics.
func (s *Server) middleware(c *fiber.Ctx) error {
	begin := time.Now()
	id := httpx.NewRequestID(c.Get(httpx.HeaderRequestID))
	c.Set(httpx.HeaderRequestID, id)
	if s.URL != nil && s.URL.Scheme == "https" {
		c.Set(fiber.HeaderStrictTransportSecurity, "max-age=31536000")
	}
	ctx, cancel := context.WithTimeout(httpx.WithRequestID(c.UserContext(), id), s.RequestTimeout)
	defer cancel()
	if s.Stages != nil {
		ctx = trace.With(ctx, s.Stages)
	}
	var failed trace.Degraded
	ctx = trace.WithDegraded(ctx, &failed)
	ctx, metered := withMetered(ctx)
	ctx, span := httpx.StartSpan(ctx, c)
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
	if b := httpx.RequestBody(c); b != nil && b.TimedOut() {
		err = fiber.ErrRequestTimeout
	}
	if err != nil {
		if err := s.handleError(c, err); err != nil {
			return err
		}
	}
	setDegraded(c, failed.Stages())
	httpx.CloseUnread(c)
	held = s.holdResponse(c, use)
	s.countRequest(ctx, c, metered)

	route, ok := c.Locals(localRoute).(string)
	if !ok {
		route = unmatched
	}
	httpx.EndSpan(span, c, route)
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
	if err := httpx.CheckHead(c.Context(), headerUser); err != nil {
		return err
	}
	if !keepUserEncoded(c) && httpx.HasEncodedSlash(&c.Request().Header) {
		return fiber.ErrNotFound
	}
	if s.cors(c) {
		return nil
	}
	return c.Next()
}

// allowedMethods returns the Allow header of a path.
func (s *Server) allowedMethods(path string) string {
	return httpx.AllowedMethods(s.api.OpenAPI().Paths, path)
}

// setRoute is the huma middleware that records the matched route for middleware.
func setRoute(ctx huma.Context, next func(huma.Context)) {
	httpx.FiberContext(ctx).Locals(localRoute, ctx.Operation().Path)
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
