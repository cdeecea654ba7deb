package apiserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// doc is the documentation of a route that its types do not express.
type doc struct {
	id          string // operationId
	tag         string
	summary     string
	description string
	params      []*huma.Param
	request     any          // example of the body; nil for routes without one
	response    any          // example of the response body
	form        *huma.Schema // of a multipart body; nil for other routes
	stream      string       // example event of a server-sent event stream
	status      int          // of success; 200 when 0
	maxBody     int64        // bytes; defaultBody when 0
	errors      []int        // statuses besides the common ones
	// file is the media type of a response that is a file.
	file string
	// successes describes further success statuses with the same body.
	successes map[int]string
	// links maps operationId.parameter to the JSON pointer of its value in the
	// response (OpenAPI links).
	links map[string]string
	// errorExamples are example messages by status that replace the common ones.
	errorExamples map[int]string
	// idempotency is the scope of the route's Idempotency-Key; empty for routes
	// that do not support one. Two paths may share a scope.
	idempotency string
	// access is the scope that the route requires: by default, read for GET and write for
	// other methods. With the scope admin, an application key does not act for a user.
	access tenant.Access
}

// handler handles an authenticated request.
type handler[I, O any] func(ctx context.Context, who tenant.Identity, in *I) (*O, error)

// add registers a route that requires a token. The order is: authentication, rate
// limit, scope, turn of the user, body, user of an application key, handler.
func add[I, O any](s *Server, method, path string, d doc, h handler[I, O]) {
	op := d.operation(method, path)
	op.Security = []map[string][]string{{bearer: {}}}
	for _, status := range everyRoute {
		if !slices.Contains(op.Errors, status) {
			op.Errors = append(op.Errors, status)
		}
	}
	required := d.requires(method)
	op.Middlewares = huma.Middlewares{setRoute, s.authenticate, s.limitRate, s.checkAccess(required), httpx.WarnOfUnknownParameters}
	op.Description = strings.TrimSpace(op.Description + "\n\n" + scopeText(required))
	switch {
	case d.form != nil:
		op.Middlewares = append(op.Middlewares, s.formBody)
	case d.request != nil:
		op.Middlewares = append(op.Middlewares, s.jsonBody())
	}
	body := httpx.BodyType[I]()
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*O, error) {
		httpx.WarnOfUnknown(ctx, body)
		who, ok := ctx.Value(identityKey{}).(tenant.Identity)
		if !ok {
			return nil, s.toHTTPError(ctx, errors.New("handler reached without an identity"))
		}
		// A deletion creates no user, and nor does a read.
		who, err := s.actForHeader(ctx, who, required, required == tenant.AccessWrite && method != http.MethodDelete)
		if err != nil {
			return nil, s.toHTTPError(ctx, err)
		}
		out, err := h(ctx, who, in)
		if err != nil {
			return nil, s.toHTTPError(ctx, err)
		}
		return out, nil
	})
}

// everyRoute are the error statuses of every route with a token; 400 is for the user of an
// application key.
var everyRoute = []int{
	http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable,
}

// requires returns the scope that the route requires.
func (d doc) requires(method string) tenant.Access {
	switch {
	case d.access != 0:
		return d.access
	case method == http.MethodGet:
		return tenant.AccessRead
	}
	return tenant.AccessWrite
}

// addPublic registers a route that requires no token.
func addPublic[O any](s *Server, method, path string, d doc, h func(ctx context.Context) (*O, error)) {
	op := d.operation(method, path)
	op.Security = []map[string][]string{}
	op.Middlewares = huma.Middlewares{setRoute}
	huma.Register(s.api, op, func(ctx context.Context, _ *struct{}) (*O, error) {
		out, err := h(ctx)
		if err != nil {
			return nil, s.toHTTPError(ctx, err)
		}
		return out, nil
	})
}

// defaultBody is the default size limit of a body, bytes.
const defaultBody = 1 << 20

// jsonBody is the middleware of routes with a JSON body.
func (s *Server) jsonBody() func(huma.Context, func(huma.Context)) {
	memory := func(ctx context.Context) httpx.MemoryCounter { return tenant.MemoryUseOf(ctx) }
	return httpx.JSONBody(memory, s.abort)
}

// bodyErrors are the error statuses of routes with a body.
var bodyErrors = []int{
	http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
}

// operation returns the huma operation of the route. huma's validation is off,
// because its messages are less precise and its schemas stricter than the
// contract; httpx.DecodeJSON and params validate instead.
func (d doc) operation(method, path string) huma.Operation {
	op := huma.Operation{
		OperationID: d.id, Method: method, Path: path, Tags: []string{d.tag},
		Summary: d.summary, Description: d.description, Parameters: d.params,
		SkipValidateParams: true, SkipValidateBody: true, DefaultStatus: cmp.Or(d.status, http.StatusOK),
		Errors:   append([]int{}, d.errors...),
		Metadata: map[string]any{metaRequest: d.request, metaResponse: d.response, metaErrorExamples: d.errorExamples, metaLinks: d.links},
	}
	if d.file != "" {
		op.Responses = fileResponse(d.file)
	}
	op.Metadata[metaSuccesses] = d.successes
	if d.idempotency != "" {
		httpx.SupportIdempotency(&op, d.idempotency)
		if !slices.Contains(op.Errors, http.StatusConflict) {
			op.Errors = append(op.Errors, http.StatusConflict)
		}
	}
	if d.stream != "" {
		op.Responses = map[string]*huma.Response{
			"200": {Description: "A stream of events", Content: map[string]*huma.MediaType{
				eventStream: {Schema: eventSchema(), Example: eventOf(d.stream)},
			}},
			"204": {Description: "There are no more events"},
		}
	}
	if d.form != nil {
		op.Metadata[metaForm] = d.form // hidden from huma, which would read the form
		op.Errors = append(op.Errors, bodyErrors...)
		return op
	}
	if d.request != nil {
		op.MaxBodyBytes = cmp.Or(d.maxBody, defaultBody) + 1 // huma rejects a body of exactly this size
		op.BodyReadTimeout = -1                              // keep the deadline of the connection
		op.Errors = append(op.Errors, bodyErrors...)
	}
	return op
}

// as returns a copy with another operationId, for a second path.
func (d doc) as(id string) doc {
	d.id = id
	return d
}

// example parses an example given as JSON.
func example(text string) any {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		panic("example " + text + ": " + err.Error()) // a programming error
	}
	return v
}
