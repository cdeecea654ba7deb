package apiserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// doc is what a route's documentation holds beside its types.
type doc struct {
	id          string // operationId
	tag         string
	summary     string
	description string
	params      []*huma.Param
	request     any          // example of the body; nil for routes without one
	response    any          // example of the answer
	form        *huma.Schema // of a multipart body; nil for routes that take JSON or nothing
	stream      string       // example of an answer that is a stream of events
	status      int          // of success; 200 when 0
	maxBody     int64        // bytes; defaultBody when 0
	errors      []int        // statuses beside those every route can give
	// file is the media type of an answer that is a file.
	file string
	// also has other successes with the same body, by status.
	also map[int]string
	// links say which routes take what the answer names: operationId.parameter
	// to where in the answer it is.
	links map[string]string
	// refusals are examples of error messages by status, where the common one
	// would be wrong.
	refusals map[int]string
	// once names a route that creates something: its requests may be sent again
	// with an Idempotency-Key and are done once. Two paths may share a name.
	once string
}

// handler answers a request of a user.
type handler[I, O any] func(ctx context.Context, who tenant.Identity, in *I) (*O, error)

// add registers a route that needs a token. What a request passes is here:
// authentication, then the tenant's request rate, then the body, then the
// handler.
func add[I, O any](s *Server, method, path string, d doc, h handler[I, O]) {
	op := d.operation(method, path)
	op.Security = []map[string][]string{{bearer: {}}}
	op.Errors = append(op.Errors, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable)
	op.Middlewares = huma.Middlewares{named, s.authenticate, s.limitRate}
	switch {
	case d.form != nil:
		op.Middlewares = append(op.Middlewares, s.formBody)
	case d.request != nil:
		op.Middlewares = append(op.Middlewares, s.jsonBody)
	}
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*O, error) {
		who, ok := ctx.Value(identityKey{}).(tenant.Identity)
		if !ok {
			return nil, s.answerFor(ctx, errors.New("handler reached without an identity"))
		}
		out, err := h(ctx, who, in)
		if err != nil {
			return nil, s.answerFor(ctx, err)
		}
		return out, nil
	})
}

// addPublic registers a route that needs no token.
func addPublic[O any](s *Server, method, path string, d doc, h func(ctx context.Context) (*O, error)) {
	op := d.operation(method, path)
	op.Middlewares = huma.Middlewares{named}
	huma.Register(s.api, op, func(ctx context.Context, _ *struct{}) (*O, error) {
		out, err := h(ctx)
		if err != nil {
			return nil, s.answerFor(ctx, err)
		}
		return out, nil
	})
}

// bodyErrors are the statuses of routes that take a body.
var bodyErrors = []int{
	http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
}

// operation is the route as huma takes it. huma validates nothing: its
// messages do not name what a field takes, and inputs are read more leniently
// than a schema can say. json.go and params.go do it.
func (d doc) operation(method, path string) huma.Operation {
	op := huma.Operation{
		OperationID: d.id, Method: method, Path: path, Tags: []string{d.tag},
		Summary: d.summary, Description: d.description, Parameters: d.params,
		SkipValidateParams: true, SkipValidateBody: true, DefaultStatus: cmp.Or(d.status, http.StatusOK),
		Errors:   append([]int{}, d.errors...),
		Metadata: map[string]any{metaRequest: d.request, metaResponse: d.response, metaRefusals: d.refusals, metaLinks: d.links},
	}
	if d.file != "" {
		op.Responses = fileAnswer(d.file)
	}
	op.Metadata[metaAlso] = d.also
	if d.once != "" {
		op.Metadata[metaRoute] = d.once
		op.Parameters = append(slices.Clone(op.Parameters), idempotencyParam())
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
		op.Metadata[metaForm] = d.form // huma would read the form if it knew of it
		op.Errors = append(op.Errors, bodyErrors...)
		return op
	}
	if d.request != nil {
		op.MaxBodyBytes = cmp.Or(d.maxBody, defaultBody) + 1 // huma refuses a body of exactly this size
		op.BodyReadTimeout = -1                              // bodyContext leaves the server's
		op.Errors = append(op.Errors, bodyErrors...)
	}
	return op
}

// as returns the documentation under another operationId, for a second path.
func (d doc) as(id string) doc {
	d.id = id
	return d
}

// example turns an example given as JSON text into the value it stands for.
func example(text string) any {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		panic("example " + text + ": " + err.Error()) // it is in the source
	}
	return v
}
