package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"
)

const (
	metaRequest  = "example.request"
	metaResponse = "example.response"
)

const apiDescription = "Memories and chat history of users, stored verbatim and found again by meaning. " +
	"Unknown query parameters and JSON fields are ignored. Ids are opaque; another user's id behaves like one that does not exist. " +
	"Times are RFC 3339, UTC, with milliseconds."

// OpenAPI returns the API's description, OpenAPI 3.1 as indented JSON. It is
// the same at every call.
func OpenAPI() ([]byte, error) {
	return New(Config{}).openAPI()
}

func (s *Server) openAPI() ([]byte, error) {
	raw, err := json.Marshal(s.api.OpenAPI())
	if err != nil {
		return nil, fmt.Errorf("write OpenAPI: %w", err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		return nil, fmt.Errorf("indent OpenAPI: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

func (s *Server) serveOpenAPI() fiber.Handler {
	spec, err := s.openAPI()
	if err != nil {
		panic(err) // it depends on the source alone
	}
	return func(c *fiber.Ctx) error {
		c.Locals(localRoute, "/openapi.json")
		c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
		return c.Send(spec)
	}
}

// finishOpenAPI puts in what huma does not derive from types: examples, error
// examples, headers; and takes out the status 422, which is never used.
func finishOpenAPI(o *huma.OpenAPI) {
	for _, item := range o.Paths {
		for _, op := range operations(item) {
			addSuccesses(op)
			finishOperation(op)
		}
	}
}

// operations returns the operations of a path.
func operations(item *huma.PathItem) []*huma.Operation {
	all := []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete}
	return slices.DeleteFunc(all, func(op *huma.Operation) bool { return op == nil })
}

func finishOperation(op *huma.Operation) {
	delete(op.Responses, strconv.Itoa(http.StatusUnprocessableEntity))
	if op.RequestBody != nil {
		for _, media := range op.RequestBody.Content { // just one
			media.Example = op.Metadata[metaRequest]
		}
	}
	for status, r := range op.Responses {
		media := r.Content[fiber.MIMEApplicationJSON]
		switch text, ok := errorExamples[status]; {
		case media == nil: // nothing, or a stream that has its example
		case status == strconv.Itoa(op.DefaultStatus):
			media.Example = op.Metadata[metaResponse]
		case ok:
			media.Example = map[string]any{"error": text}
		}
		r.Headers = withHeaders(r.Headers, status)
		if op.Security != nil && status != strconv.Itoa(http.StatusUnauthorized) {
			addRateHeaders(r.Headers)
		}
	}
}

func withHeaders(headers map[string]*huma.Param, status string) map[string]*huma.Param {
	if headers == nil {
		headers = map[string]*huma.Param{}
	}
	text := &huma.Schema{Type: huma.TypeString}
	headers[headerRequestID] = &huma.Header{Description: "Names the request in the server's log.", Schema: text}
	if status == strconv.Itoa(http.StatusServiceUnavailable) || status == strconv.Itoa(http.StatusTooManyRequests) {
		headers[fiber.HeaderRetryAfter] = &huma.Header{Description: "Seconds to wait before trying again.", Schema: &huma.Schema{Type: huma.TypeInteger}}
	}
	return headers
}

// addRateHeaders documents what answers tell of the request rate.
func addRateHeaders(headers map[string]*huma.Param) {
	for name, text := range map[string]string{
		headerRateLimit:     "Requests the tenant may make each minute.",
		headerRateRemaining: "Requests left of this minute, about.",
		headerRateReset:     "Seconds until the next minute begins.",
	} {
		headers[name] = &huma.Header{Description: text, Schema: &huma.Schema{Type: huma.TypeInteger}}
	}
}

var errorExamples = map[string]string{
	"400": "text is required and must not be blank",
	"401": "a valid token is needed: Authorization: Bearer <API_TOKEN>",
	"403": "this tenant is suspended; its data is kept, ask whoever operates it",
	"404": "no memory has this memoryId",
	"409": "name is taken by another bucket",
	"413": "the body must be at most 1048576 bytes",
	"415": "the body must be JSON (Content-Type: application/json), not compressed",
	"429": "this tenant's 600 requests per minute are used up; try again in 12 s",
	"500": unexpectedAnswer,
	"503": "a store is away; try again",
}
