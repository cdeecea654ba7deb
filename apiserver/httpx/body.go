package httpx

import (
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"os"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humafiber"
	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// incompleteBody is the message for a body that ends early.
const incompleteBody = "incomplete request body"

// localBody is the key of the request's *Body in Fiber's context.
const localBody = "mnemo.body"

// Body reads a request body and tracks whether it was read completely.
type Body struct {
	stream io.Reader
	left   int // remaining bytes by Content-Length; negative if chunked
	done   bool
	begun  bool     // received a byte
	silent bool     // the first byte did not arrive in time
	waits  net.Conn // of a client that expects the server to ask for the body
}

// Read does not read past the end: after the last chunk the stream would parse
// the next request as another chunk.
func (b *Body) Read(p []byte) (int, error) {
	if b.done {
		return 0, io.EOF
	}
	if err := b.ask(); err != nil {
		return 0, err
	}
	n, err := b.stream.Read(p)
	b.begun = b.begun || n > 0
	b.silent = !b.begun && errors.Is(err, os.ErrDeadlineExceeded)
	if b.left > 0 {
		b.left -= n
	}
	b.done = err == io.EOF || b.left == 0
	return n, err
}

// ask asks a client that waits for it to send the body, once.
func (b *Body) ask() error {
	if b.waits == nil {
		return nil
	}
	conn := b.waits
	b.waits = nil
	if err := conn.SetWriteDeadline(time.Now().Add(stallTimeout)); err != nil { // that of the last response may have passed
		return err //nolint:wrapcheck // ends the connection
	}
	_, err := io.WriteString(conn, "HTTP/1.1 100 Continue\r\n\r\n")
	return err //nolint:wrapcheck // ends the connection
}

// RequestBody returns the body of a request, nil if it has none.
func RequestBody(c *fiber.Ctx) *Body {
	if b, ok := c.Locals(localBody).(*Body); ok {
		return b
	}
	length := c.Request().Header.ContentLength()
	if length == 0 || length < -1 || c.Request().BodyStream() == nil {
		return nil
	}
	b := &Body{stream: c.Request().BodyStream(), left: length}
	if h := &c.Request().Header; h.IsHTTP11() && string(h.Peek(fiber.HeaderExpect)) == expectContinue {
		b.waits = c.Context().Conn()
	}
	c.Locals(localBody, b)
	return b
}

// TimedOut reports whether the first byte of the body did not arrive in time.
func (b *Body) TimedOut() bool { return b.silent }

// Exceeds reports whether the announced length of the body exceeds a limit.
func (b *Body) Exceeds(limit int64) bool { return int64(b.left) > limit }

// ReadAll reads a body of at most limit bytes.
func (b *Body) ReadAll(limit int64) ([]byte, error) {
	if b.Exceeds(limit) {
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

// ReadJSON reads a JSON body of at most limit bytes.
func ReadJSON(c *fiber.Ctx, limit int64) ([]byte, error) {
	b := RequestBody(c)
	if b == nil {
		return nil, fault.New(fault.Invalid, "the body is required")
	}
	if !isJSON(c.Get(fiber.HeaderContentType)) || c.Get(fiber.HeaderContentEncoding) != "" {
		return nil, errNotJSON
	}
	return b.ReadAll(limit)
}

var errNotJSON error = fault.New(fault.Unsupported, "the body must be JSON (Content-Type: application/json), not compressed")

// CloseUnread closes the connection after this response if the body was not read
// completely: the rest would be parsed as the next request.
func CloseUnread(c *fiber.Ctx) {
	if b := RequestBody(c); b != nil && !b.done {
		closeConnection(c.Context())
	}
}

// JSONBody is the huma middleware of routes with a JSON body. It rejects other
// media types and oversized bodies before reading them. memory counts what is read,
// and abort sends an error.
func JSONBody(memory func(context.Context) MemoryCounter, abort func(huma.Context, error)) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		read, err := jsonBody(ctx, memory(ctx.Context()))
		if err != nil {
			abort(ctx, err)
			return
		}
		next(read)
	}
}

func jsonBody(ctx huma.Context, memory MemoryCounter) (huma.Context, error) {
	b := RequestBody(FiberContext(ctx))
	if b == nil {
		return bodyContext{ctx, strings.NewReader("")}, nil
	}
	if !isJSON(ctx.Header("Content-Type")) || ctx.Header("Content-Encoding") != "" {
		return nil, errNotJSON
	}
	if limit := ctx.Operation().MaxBodyBytes - 1; b.Exceeds(limit) {
		return nil, tooLarge(limit)
	}
	CountBody(FiberContext(ctx), memory)
	keyed, reader, err := WithIdempotencyKey(ctx, b)
	if err != nil {
		return nil, err
	}
	keyed, reader = keepBeginning(keyed, reader)
	return bodyContext{keyed, reader}, nil
}

// humaContext aliases huma.Context, whose name collides with its method Context
// when embedded.
type humaContext huma.Context

// bodyContext replaces the body reader of a request.
type bodyContext struct {
	humaContext
	reader io.Reader
}

// BodyReader returns the reader of the body.
func (c bodyContext) BodyReader() io.Reader { return c.reader }

// SetReadDeadline does nothing: conn sets the deadline, and huma would remove it.
func (bodyContext) SetReadDeadline(time.Time) error { return nil }

// Header reports every JSON media type that isJSON accepts as application/json,
// the only one huma knows.
func (c bodyContext) Header(name string) string {
	if name == fiber.HeaderContentType {
		return fiber.MIMEApplicationJSON
	}
	return c.humaContext.Header(name)
}

// Unwrap returns the wrapped context, for huma's adapters.
func (c bodyContext) Unwrap() huma.Context { return c.humaContext }

// FiberContext returns Fiber's context of a huma context.
func FiberContext(ctx huma.Context) *fiber.Ctx { return humafiber.Unwrap(ctx) }

// isJSON reports whether a content type is JSON; a missing one counts as JSON.
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
