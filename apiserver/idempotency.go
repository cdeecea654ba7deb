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
	// maxIdempotencyKey is the length limit of a key, bytes.
	maxIdempotencyKey = 255
	// metaRoute holds the idempotency scope of a route.
	metaRoute = "idempotency.route"
)

// idempotentRequest is a request with a key; its body is hashed while it is read.
type idempotentRequest struct {
	route string
	key   tenant.Hash
	body  hash.Hash
}

// idempotencyKey is the context key of an *idempotentRequest.
type idempotencyKey struct{}

// withIdempotencyKey adds the request's key to the context, if the route supports
// one, and returns a reader that hashes the body.
func withIdempotencyKey(ctx huma.Context, body io.Reader) (huma.Context, io.Reader, error) {
	key := ctx.Header(headerIdempotencyKey)
	route, ok := ctx.Operation().Metadata[metaRoute].(string)
	if key == "" || !ok {
		return ctx, body, nil
	}
	if len(key) > maxIdempotencyKey {
		return nil, nil, fault.New(fault.Invalid, "%s must be at most %d bytes", headerIdempotencyKey, maxIdempotencyKey)
	}
	r := &idempotentRequest{route: route, key: sha256.Sum256([]byte(key)), body: sha256.New()}
	return huma.WithValue(ctx, idempotencyKey{}, r), io.TeeReader(body, r.body), nil
}

// requestOf returns the idempotency record of a request. Its body must have been
// read.
func requestOf(ctx context.Context) tenant.Request {
	r, ok := ctx.Value(idempotencyKey{}).(*idempotentRequest)
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
		Description: "A unique key for each request. Repeating a request with the same key and body within 24 hours " +
			"returns the first response without executing it again; a different body is a 409.",
	}
}
