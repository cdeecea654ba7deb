package apiserver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/apiserver/reference"
)

const (
	metaRequest       = "example.request"
	metaResponse      = "example.response"
	metaErrorExamples = "example.errors"
	metaForm          = "form"
	metaLinks         = "links"
)

const apiDescription = "Memories and chat history of users, stored verbatim and searchable by meaning. " +
	"Unknown query parameters and JSON fields are ignored; `Warning` headers name the fields. Ids are opaque; another user's id behaves like an id that does not exist. " +
	"Times are RFC 3339 in UTC with milliseconds."

var tags = []*huma.Tag{
	{Name: "Memories", Description: "Short notes."},
	{Name: "Buckets", Description: "Groups of memories."},
	{Name: "Chat history", Description: "Imported conversations."},
	{Name: "Search", Description: "Memories and conversations together."},
	{Name: "Account", Description: "All of the user's data."},
	{Name: "Tokens", Description: "The tokens that a user created, for tokens of the user with the scope admin."},
	{Name: "Users", Description: "The users of a tenant's applications, for application keys with the scope admin."},
	{Name: "Health", Description: "State of the server."},
}

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
		panic(err) // a programming error
	}
	return func(c *fiber.Ctx) error {
		c.Locals(localRoute, "/openapi.json")
		c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
		return c.Send(spec)
	}
}

func serveReference(c *fiber.Ctx) error {
	c.Locals(localRoute, reference.Path)
	return reference.Serve(c)
}

// finishOpenAPI adds what huma does not derive from types: examples, headers, and
// shared responses. It removes status 422, which is never used.
func finishOpenAPI(o *huma.OpenAPI) {
	for name, schema := range o.Components.Schemas.Map() {
		finishSchema(schema)
		limit(name, schema)
	}
	o.Components.Headers = sharedHeaders()
	o.Components.Responses = sharedResponses(o.Components.Schemas)
	for _, item := range o.Paths {
		for _, op := range httpx.Operations(item) {
			addSuccesses(op)
			delete(op.Responses, strconv.Itoa(http.StatusUnprocessableEntity))
			delete(op.Responses, "default")
			finishOperation(op, o.Components.Responses)
			if op.RequestBody == nil {
				continue
			}
			if media := op.RequestBody.Content[fiber.MIMEApplicationJSON]; media != nil {
				finishRequest(media.Schema, o.Components.Schemas)
			}
		}
	}
}

// finishSchema removes the redundant additionalProperties: true.
func finishSchema(s *huma.Schema) {
	if s.AdditionalProperties == true {
		s.AdditionalProperties = nil
	}
}

// finishRequest documents that no property of a body is null. The server accepts
// null for an absent property.
func finishRequest(s *huma.Schema, all huma.Registry) {
	if s.Ref != "" {
		s = all.SchemaFromRef(s.Ref)
	}
	for _, p := range s.Properties {
		p.Nullable = false
		finishRequest(p, all)
	}
	if s.Items != nil {
		finishRequest(s.Items, all)
	}
}

func finishOperation(op *huma.Operation, shared map[string]*huma.Response) {
	if form, ok := op.Metadata[metaForm].(*huma.Schema); ok {
		op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{formData: {Schema: form}}}
	}
	if op.RequestBody != nil {
		for _, media := range op.RequestBody.Content { // just one
			media.Example = op.Metadata[metaRequest]
		}
	}
	for _, p := range op.Parameters {
		finishParameter(p)
	}
	op.Responses[strconv.Itoa(http.StatusRequestHeaderFieldsTooLarge)] = &huma.Response{}
	examples, _ := op.Metadata[metaErrorExamples].(map[int]string)
	for text, r := range op.Responses {
		status, err := strconv.Atoi(text)
		if err != nil {
			panic("response " + text + " of " + op.OperationID + " is not a status") // a programming error
		}
		name := errorResponses[status].name
		switch {
		case name != "" && len(op.Security) > 0:
			op.Responses[text] = &huma.Response{Ref: "#/components/responses/" + name}
		case name != "":
			op.Responses[text] = withoutRate(shared[name])
		default:
			finishResponse(r, status, op)
			if message := cmp.Or(examples[status], commonErrorExamples[status]); message != "" {
				r.Content[fiber.MIMEApplicationJSON].Example = map[string]any{"error": message, "code": httpx.StatusCode(status)}
			}
		}
	}
}

// finishParameter moves a parameter's description and example from its schema to
// the parameter.
func finishParameter(p *huma.Param) {
	if p.Schema.Description != "" {
		p.Description, p.Schema.Description = cmp.Or(p.Description, p.Schema.Description), ""
	}
	if p.Example == nil && len(p.Schema.Examples) > 0 {
		p.Example, p.Schema.Examples = p.Schema.Examples[0], nil
	}
}

// finishResponse documents a response that routes do not share.
func finishResponse(r *huma.Response, status int, op *huma.Operation) {
	if r.Headers == nil {
		r.Headers = map[string]*huma.Param{}
	}
	for _, name := range headersOf(status, len(op.Security) > 0) {
		r.Headers[name] = headerRef(name)
	}
	if status >= http.StatusMultipleChoices {
		return
	}
	if media := r.Content[fiber.MIMEApplicationJSON]; media != nil {
		media.Example = op.Metadata[metaResponse]
	}
	links, _ := op.Metadata[metaLinks].(map[string]string)
	for target, where := range links {
		id, parameter, _ := strings.Cut(target, ".")
		if r.Links == nil {
			r.Links = map[string]*huma.Link{}
		}
		r.Links[id] = &huma.Link{OperationID: id, Parameters: map[string]any{parameter: "$response.body#" + where}}
	}
}
