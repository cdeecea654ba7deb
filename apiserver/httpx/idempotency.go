package httpx

import (
	"context"
	"crypto/sha256"
	"hash"
	"io"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// HeaderIdempotencyKey is the header of the key with which a client may repeat a request.
const HeaderIdempotencyKey = "Idempotency-Key"

const (
	// maxIdempotencyKey is the length limit of a key, bytes.
	maxIdempotencyKey = 255
	// metaRoute holds the idempotency scope of a route.
	metaRoute = "idempotency.route"
)

// IdempotentRequest is a request with a key; its body is hashed while it is read.
type IdempotentRequest struct {
	Route string
	Key   [sha256.Size]byte
	Body  hash.Hash
}

// idempotencyKey is the context key of an *IdempotentRequest.
type idempotencyKey struct{}

// WithIdempotencyKey adds the request's key to the context, if the route supports
// one, and returns a reader that hashes the body.
func WithIdempotencyKey(ctx huma.Context, body io.Reader) (huma.Context, io.Reader, error) {
	key := ctx.Header(HeaderIdempotencyKey)
	route, ok := ctx.Operation().Metadata[metaRoute].(string)
	if key == "" || !ok {
		return ctx, body, nil
	}
	if len(key) > maxIdempotencyKey {
		return nil, nil, fault.New(fault.Invalid, "%s must be at most %d bytes", HeaderIdempotencyKey, maxIdempotencyKey)
	}
	r := &IdempotentRequest{Route: route, Key: sha256.Sum256([]byte(key)), Body: sha256.New()}
	return huma.WithValue(ctx, idempotencyKey{}, r), io.TeeReader(body, r.Body), nil
}

// IdempotentRequestOf returns the request with a key of a context, nil for a request without one.
func IdempotentRequestOf(ctx context.Context) *IdempotentRequest {
	r, _ := ctx.Value(idempotencyKey{}).(*IdempotentRequest)
	return r
}

// SupportIdempotency lets clients send a key to a route. Two paths may share the scope of their keys.
func SupportIdempotency(op *huma.Operation, scope string) {
	op.Metadata[metaRoute] = scope
	op.Parameters = append(slices.Clone(op.Parameters), idempotencyParam())
}

// idempotencyParam documents the header.
func idempotencyParam() *huma.Param {
	longest := maxIdempotencyKey
	return &huma.Param{
		Name: HeaderIdempotencyKey, In: "header", Example: "5e0c8b1e-6b1f-4a35-9d4e-0f5a4b1c7d22",
		Schema: &huma.Schema{Type: huma.TypeString, MaxLength: &longest},
		Description: "A unique key for each request. Repeating a request with the same key and body within 24 hours " +
			"returns the first response without executing it again; a different body is a 409.",
	}
}
