package httpx

import (
	"context"

	"github.com/google/uuid"
)

// HeaderRequestID is the header of the id of a request, in the request and in its response.
const HeaderRequestID = "X-Request-Id"

// maxRequestID is the length limit of a client's request ID, bytes.
const maxRequestID = 128

// requestIDKey is the context key of the request ID.
type requestIDKey struct{}

// NewRequestID returns the client's request ID if it is safe to repeat in headers
// and logs, and a new one otherwise.
func NewRequestID(given string) string {
	if given == "" || len(given) > maxRequestID {
		return uuid.NewString()
	}
	for _, r := range given {
		if r <= ' ' || r > '~' {
			return uuid.NewString()
		}
	}
	return given
}

// RequestIDOf returns the request ID of a context.
func RequestIDOf(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// WithRequestID returns a context with a request ID.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}
