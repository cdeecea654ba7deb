package apiserver

import (
	"bytes"
	"io"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// maxMemory and maxUserMemory are the most bytes of JSON bodies, of texts that are read to make responses, and
	// of responses that are not sent yet: of all requests and of one user's. Decoding and encoding need up to
	// five times as much. A user's share has room for one body of the largest size.
	maxMemory     = 128 << 20
	maxUserMemory = 64 << 20
	// maxValues is the most values of a JSON body. A conversation within the token limit has fewer.
	maxValues = 500_000
	// valueBytes is the memory of a decoded JSON value. A value of two bytes, such as {}, needs as much.
	valueBytes = 100
	// maxDepth is the most objects and arrays of a JSON body that enclose each other. The deepest field, a filter, needs
	// fewer than 20.
	maxDepth = 64
)

func newMemory() *tenant.Budget { return tenant.NewBudget(maxMemory, maxUserMemory) }

// intakeReader counts what is read of a JSON body: its bytes, or the memory of its values if it is more. It fails at a
// limit, so that a body of too many values is not even read.
type intakeReader struct {
	io.Reader

	use    *tenant.MemoryUse
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

// countBody counts what is read of a request's JSON body until the response is sent.
func countBody(c *fiber.Ctx) {
	if b := requestBody(c); b != nil {
		b.stream = &intakeReader{Reader: b.stream, use: tenant.MemoryUseOf(c.UserContext())}
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

// holdResponse counts the body of a response until it is sent, instead of what was read to make it, and reports whether
// it does: otherwise the request is finished. If there is no room for the response of a request that only reads, an error
// replaces it. Large responses to clients without an identity are constants, such as the contract, of which there is one copy:
// counting them would let a client that does not read keep them from others.
func (s *Server) holdResponse(c *fiber.Ctx, use *tenant.MemoryUse) bool {
	res := c.Response()
	if use.Anonymous() || res.IsBodyStream() || len(res.Body()) <= tenant.FreeMemory { // a stream is sent in blocks
		return false
	}
	body := res.Body()
	if err := use.Set(int64(len(body)), !onlyReads(c)); err != nil {
		_ = s.handleError(c, err)
		return false
	}
	res.SwapBody(nil) // does not return a body that the handler sent without copying it
	res.SetBodyStream(&heldBody{bytes.NewReader(body), use}, len(body))
	return true
}

// heldBody is the body of a response, which is counted until it is sent or the connection is closed.
type heldBody struct {
	*bytes.Reader

	use *tenant.MemoryUse
}

// Close is called when the body was sent, or cannot be sent.
func (b *heldBody) Close() error {
	b.use.Release()
	return nil
}

// setReads records that the request changes nothing.
func setReads(c *fiber.Ctx, required tenant.Access) {
	c.Locals(localReads, required == tenant.AccessRead)
}

func onlyReads(c *fiber.Ctx) bool {
	reads, ok := c.Locals(localReads).(bool)
	return !ok && c.Method() == fiber.MethodGet || reads
}
