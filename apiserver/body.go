package apiserver

import (
	"io"
	"mime"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humafiber"
	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

const (
	// defaultBody is the largest body of most routes, bytes.
	defaultBody = 1 << 20
	// ingestBody is the largest conversation sent online, bytes.
	ingestBody = 50 << 20
)

// body reads a request's body and knows whether it was read to its end.
type body struct {
	stream io.Reader
	left   int // bytes by Content-Length; negative when chunked
	done   bool
}

// Read never asks the stream again after its end: past the last chunk it
// would take the next request for another one.
func (b *body) Read(p []byte) (int, error) {
	if b.done {
		return 0, io.EOF
	}
	n, err := b.stream.Read(p)
	if b.left > 0 {
		b.left -= n
	}
	b.done = err == io.EOF || b.left == 0
	return n, err
}

// requestBody returns the body of a request, nil when it has none.
func requestBody(c *fiber.Ctx) *body {
	if b, ok := c.Locals(localBody).(*body); ok {
		return b
	}
	length := c.Request().Header.ContentLength()
	if length == 0 || length < -1 || c.Request().BodyStream() == nil {
		return nil
	}
	b := &body{stream: c.Request().BodyStream(), left: length}
	c.Locals(localBody, b)
	return b
}

// closeUnread makes the connection end with this answer when the body was not
// read to its end: what is left of it would be taken for the next request.
func closeUnread(c *fiber.Ctx) {
	if b := requestBody(c); b != nil && !b.done {
		endConnection(c.Context())
	}
}

// jsonBody is the huma middleware of routes that take a body: it refuses what
// is not JSON or too large before reading any of it.
func (s *Server) jsonBody(ctx huma.Context, next func(huma.Context)) {
	b := requestBody(fiberCtx(ctx))
	if b == nil {
		next(bodyContext{ctx, strings.NewReader("")})
		return
	}
	if !isJSON(ctx.Header("Content-Type")) || ctx.Header("Content-Encoding") != "" {
		s.refuse(ctx, fault.New(fault.Unsupported, "the body must be JSON (Content-Type: application/json), not compressed"))
		return
	}
	if limit := ctx.Operation().MaxBodyBytes - 1; int64(b.left) > limit {
		s.refuse(ctx, tooLarge(limit))
		return
	}
	known, reader, err := withRepeatable(ctx, b)
	if err != nil {
		s.refuse(ctx, err)
		return
	}
	next(bodyContext{known, reader})
}

// humaContext is huma.Context under a name that can be embedded beside its
// method Context.
type humaContext huma.Context

// bodyContext is a request whose body is read through the reader.
type bodyContext struct {
	humaContext
	reader io.Reader
}

// BodyReader returns the reader of the body.
func (c bodyContext) BodyReader() io.Reader { return c.reader }

// SetReadDeadline does nothing: the body's deadline is set by its length, when
// its headers arrive, and huma would lift it.
func (bodyContext) SetReadDeadline(time.Time) error { return nil }

// Header returns a header; whatever jsonBody let through as JSON is plain JSON
// to huma.
func (c bodyContext) Header(name string) string {
	if name == fiber.HeaderContentType {
		return fiber.MIMEApplicationJSON
	}
	return c.humaContext.Header(name)
}

// Unwrap returns the context inside, for huma's adapters.
func (c bodyContext) Unwrap() huma.Context { return c.humaContext }

func fiberCtx(ctx huma.Context) *fiber.Ctx { return humafiber.Unwrap(ctx) }

// isJSON reports whether a content type is JSON; a missing one is taken for it.
func isJSON(contentType string) bool {
	if contentType == "" {
		return true
	}
	t, params, err := mime.ParseMediaType(contentType)
	if err != nil || t != "application/json" && !strings.HasSuffix(t, "+json") {
		return false
	}
	charset, ok := params["charset"]
	return !ok || strings.EqualFold(charset, "utf-8")
}

func tooLarge(limit int64) error {
	return fault.New(fault.TooLarge, "the body must be at most %d bytes", limit)
}
