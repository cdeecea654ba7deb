package httpx

import (
	"bytes"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
	"golang.org/x/net/http/httpguts"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// Indexes of the headers that must not be sent more than once.
const (
	hostHeader = iota
	lengthHeader
	encodingHeader
)

// CheckHead rejects requests that fasthttp accepts although a proxy may have read
// them differently (RFC 9112): it would have forwarded one request, and the server
// would handle two (request smuggling), or another host's or user's. The header that names the user must not be sent
// more than once. An error closes the connection after the response: the start of the next request is unknown.
func CheckHead(ctx *fasthttp.RequestCtx, userHeader string) error {
	err := checkHead(&ctx.Request.Header, userHeader)
	if err != nil {
		closeConnection(ctx)
	}
	return err
}

func checkHead(h *fasthttp.RequestHeader, userHeader string) error {
	singletons := [...]string{
		hostHeader: fiber.HeaderHost, lengthHeader: fiber.HeaderContentLength, encodingHeader: fiber.HeaderTransferEncoding,
		fiber.HeaderAuthorization, userHeader,
	}
	if v := string(h.Protocol()); v != "HTTP/1.1" && v != "HTTP/1.0" {
		return fault.New(fault.Invalid, "the HTTP version must be 1.1 or 1.0")
	}
	var given [len(singletons)]int
	for line := range bytes.Lines(h.RawHeaders()) {
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			continue
		}
		name, _, ok := bytes.Cut(line, []byte(":"))
		if !ok || !httpguts.ValidHeaderFieldName(string(name)) {
			return fault.New(fault.Invalid, "each header must be a name, a colon without space before it, and a value on the same line")
		}
		for i, singleton := range singletons {
			if strings.EqualFold(string(name), singleton) {
				given[i]++
			}
		}
	}
	for i, name := range singletons {
		if given[i] > 1 {
			return fault.New(fault.Invalid, "header %s must not be sent more than once", name)
		}
	}
	if given[hostHeader] == 0 && h.IsHTTP11() {
		return fault.New(fault.Invalid, "header Host is required")
	}
	if given[lengthHeader] > 0 && given[encodingHeader] > 0 {
		return fault.New(fault.Invalid, "Content-Length and Transfer-Encoding must not be sent together")
	}
	return nil
}

// HasEncodedSlash reports whether the path of a request contains an encoded slash or
// backslash. No route has one, and decoding would change the segments of the path.
func HasEncodedSlash(h *fasthttp.RequestHeader) bool {
	path, _, _ := bytes.Cut(h.RequestURI(), []byte("?"))
	if bytes.IndexByte(path, '%') < 0 {
		return false
	}
	path = bytes.ToLower(path)
	return bytes.Contains(path, []byte("%2f")) || bytes.Contains(path, []byte("%5c"))
}
