package httpx

import (
	"bytes"
	"io"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

const (
	// maxValues is the most values of a JSON body. A conversation within the token limit has fewer.
	maxValues = 500_000
	// valueBytes is the memory of a decoded JSON value. A value of two bytes, such as {}, needs as much.
	valueBytes = 100
	// maxDepth is the most objects and arrays of a JSON body that enclose each other. The deepest field, a filter, needs
	// fewer than 20.
	maxDepth = 64
)

// MemoryCounter counts the memory of a request.
type MemoryCounter interface {
	// Add counts further bytes, and fails at the limit.
	Add(bytes int64) error
}

// intakeReader counts what is read of a JSON body: its bytes, or the memory of its values if it is more. It fails at a
// limit, so that a body of too many values is not even read.
type intakeReader struct {
	io.Reader

	use    MemoryCounter
	read   int64 // bytes
	weight int64 // counted
	values valueCounter
}

// Read reads and counts.
func (r *intakeReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if n == 0 {
		return n, err //nolint:wrapcheck // compared by the reader
	}
	r.read += int64(n)
	if err := r.values.count(p[:n]); err != nil {
		return 0, err
	}
	weight := max(r.read, r.values.n*valueBytes)
	if err := r.use.Add(weight - r.weight); err != nil {
		return 0, err //nolint:wrapcheck // compared by the reader
	}
	r.weight = weight
	return n, err //nolint:wrapcheck // compared by the reader
}

// CountBody counts what is read of a request's JSON body.
func CountBody(c *fiber.Ctx, memory MemoryCounter) {
	if b := RequestBody(c); b != nil {
		b.stream = &intakeReader{Reader: b.stream, use: memory}
	}
}

// valueCounter counts the values of JSON before it is parsed: the starts of objects and arrays, and commas.
type valueCounter struct {
	n       int64
	depth   int // objects and arrays that are not closed
	quoted  bool
	escaped bool // the next character is part of an escape
}

// count counts the values of the next bytes. It fails if there are more than maxValues, or nested deeper than maxDepth.
func (v *valueCounter) count(data []byte) error {
	for _, c := range data {
		switch {
		case v.escaped:
			v.escaped = false
		case c == '"':
			v.quoted = !v.quoted
		case c == '\\':
			v.escaped = true // only valid inside a string
		case v.quoted:
		case c == ',':
			v.n++
		case c == '{' || c == '[':
			v.n++
			if v.depth++; v.depth > maxDepth {
				return fault.New(fault.Invalid, "the body must not be nested more than %d levels deep", maxDepth)
			}
		case c == '}' || c == ']':
			v.depth--
		}
	}
	if v.n > maxValues {
		return fault.New(fault.Invalid, "the body must have at most %d JSON values", maxValues)
	}
	return nil
}

// HoldBody calls release when the body of a response was sent, or cannot be sent because the connection is closed.
func HoldBody(r *fasthttp.Response, release func()) {
	body := r.Body()
	r.SwapBody(nil) // does not return a body that the handler sent without copying it
	r.SetBodyStream(&heldBody{bytes.NewReader(body), release}, len(body))
}

// heldBody is the body of a response that is released when it is closed.
type heldBody struct {
	*bytes.Reader

	release func()
}

// Close is called when the body was sent, or cannot be sent.
func (b *heldBody) Close() error {
	b.release()
	return nil
}
