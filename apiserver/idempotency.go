package apiserver

import (
	"context"

	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// requestOf returns the idempotency record of a request. Its body must have been
// read.
func requestOf(ctx context.Context) tenant.Request {
	r := httpx.IdempotentRequestOf(ctx)
	if r == nil {
		return tenant.Request{}
	}
	return tenant.Request{Route: r.Route, Key: r.Key, Body: tenant.Hash(r.Body.Sum(nil))}
}
