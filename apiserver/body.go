package apiserver

import (
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

const (
	// defaultBody is the default size limit of a body, bytes.
	defaultBody = 1 << 20
	// ingestBody is the size limit of an ingested conversation, bytes.
	ingestBody = 50 << 20
)

// body reads a request body and tracks whether it was read completely.
type body struct {
	stream io.Reader
	left   int // remaining bytes by Content-Length; negative if chunked
	done   bool
	begun  bool     // received a byte
	silent bool     // the first byte did not arrive in time
	waits  net.Conn // of a client that expects the server to ask for the body
}

// Read does not read past the end: after the last chunk the stream would parse
// the next request as another chunk.
func (b *body) Read(p []byte) (int, error) {
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
func (b *body) ask() error {
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

// requestBody returns the body of a request, nil if it has none.
func requestBody(c *fiber.Ctx) *body {
	if b, ok := c.Locals(localBody).(*body); ok {
		return b
	}
	length := c.Request().Header.ContentLength()
	if length == 0 || length < -1 || c.Request().BodyStream() == nil {
		return nil
	}
	b := &body{stream: c.Request().BodyStream(), left: length}
	if h := &c.Request().Header; h.IsHTTP11() && string(h.Peek(fiber.HeaderExpect)) == expectContinue {
		b.waits = c.Context().Conn()
	}
	c.Locals(localBody, b)
	return b
}

// closeUnread closes the connection after this response if the body was not read
// completely: the rest would be parsed as the next request.
func closeUnread(c *fiber.Ctx) {
	if b := requestBody(c); b != nil && !b.done {
		closeConnection(c.Context())
	}
}

// jsonBody is the huma middleware of routes with a JSON body. It rejects other
// media types and oversized bodies before reading them.
func (s *Server) jsonBody(ctx huma.Context, next func(huma.Context)) {
	b := requestBody(fiberCtx(ctx))
	if b == nil {
		next(bodyContext{ctx, strings.NewReader("")})
		return
	}
	if !isJSON(ctx.Header("Content-Type")) || ctx.Header("Content-Encoding") != "" {
		s.abort(ctx, fault.New(fault.Unsupported, "the body must be JSON (Content-Type: application/json), not compressed"))
		return
	}
	if limit := ctx.Operation().MaxBodyBytes - 1; int64(b.left) > limit {
		s.abort(ctx, tooLarge(limit))
		return
	}
	countBody(fiberCtx(ctx))
	keyed, reader, err := withIdempotencyKey(ctx, b)
	if err != nil {
		s.abort(ctx, err)
		return
	}
	keyed, reader = keepBeginning(keyed, reader)
	next(bodyContext{keyed, reader})
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

// Header reports every JSON media type that jsonBody accepts as application/json,
// the only one huma knows.
func (c bodyContext) Header(name string) string {
	if name == fiber.HeaderContentType {
		return fiber.MIMEApplicationJSON
	}
	return c.humaContext.Header(name)
}

// Unwrap returns the wrapped context, for huma's adapters.
func (c bodyContext) Unwrap() huma.Context { return c.humaContext }

func fiberCtx(ctx huma.Context) *fiber.Ctx { return humafiber.Unwrap(ctx) }

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
