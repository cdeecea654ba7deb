package apiserver

import (
	"context"
	"crypto/sha256"
	"hash"
	"io"

	"github.com/danielgtaylor/huma/v2"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	headerIdempotencyKey = "Idempotency-Key"
	// maxIdempotencyKey is the longest key, bytes.
	maxIdempotencyKey = 255
	// metaRoute is under what name a route's requests are remembered.
	metaRoute = "idempotency.route"
)

// repeatable is a request with a key: the body's hash is made while it is read.
type repeatable struct {
	route string
	key   tenant.Hash
	body  hash.Hash
}

// repeatableKey is the context key of a *repeatable.
type repeatableKey struct{}

// withRepeatable notes the key of a request, where the route takes one, and
// returns a reader of its body that knows what was read.
func withRepeatable(ctx huma.Context, body io.Reader) (huma.Context, io.Reader, error) {
	key := ctx.Header(headerIdempotencyKey)
	route, ok := ctx.Operation().Metadata[metaRoute].(string)
	if key == "" || !ok {
		return ctx, body, nil
	}
	if len(key) > maxIdempotencyKey {
		return nil, nil, fault.New(fault.Invalid, "%s must be at most %d bytes", headerIdempotencyKey, maxIdempotencyKey)
	}
	r := &repeatable{route: route, key: sha256.Sum256([]byte(key)), body: sha256.New()}
	return huma.WithValue(ctx, repeatableKey{}, r), io.TeeReader(body, r.body), nil
}

// requestOf names the request a handler was called with, once its body is read.
func requestOf(ctx context.Context) tenant.Request {
	r, ok := ctx.Value(repeatableKey{}).(*repeatable)
	if !ok {
		return tenant.Request{}
	}
	return tenant.Request{Route: r.route, Key: r.key, Body: tenant.Hash(r.body.Sum(nil))}
}

// idempotencyParam documents the header.
func idempotencyParam() *huma.Param {
	longest := maxIdempotencyKey
	return &huma.Param{
		Name: headerIdempotencyKey, In: "header", Example: "5e0c8b1e-6b1f-4a35-9d4e-0f5a4b1c7d22",
		Schema: &huma.Schema{Type: huma.TypeString, MaxLength: &longest},
		Description: "A key of your choice, new for each request. Sent again with the same body within 24 hours, " +
			"the request is not done again and the first answer is given; with another body it is a 409.",
	}
}
