package apiserver

import (
	"context"
	"fmt"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/trace"
)

// bearer is the security scheme. The header of an application's user is not one: clients
// that generators write send the token in every scheme.
const bearer = "bearer"

// identityKey is the context key of the caller's identity.
type identityKey struct{}

// authenticate is the huma middleware of every route under /api. It responds
// 401 without a valid token and 403 for a suspended tenant.
func (s *Server) authenticate(ctx huma.Context, next func(huma.Context)) {
	staged, end := trace.Begin(ctx.Context(), trace.Auth)
	who, err := s.authorize(staged, ctx.Header("Authorization"), false)
	end()
	if err == nil {
		s.keepOrigin(httpx.FiberContext(ctx), who)
	}
	if err != nil {
		s.abort(ctx, err)
		return
	}
	next(huma.WithValue(huma.WithContext(ctx, tenant.WithActor(ctx.Context(), who.Actor)), identityKey{}, who))
}

// authorize returns the identity of an Authorization header: Unauthorized without
// a valid token, Forbidden for a suspended tenant. With oauth, OAuth access
// tokens are accepted as well.
func (s *Server) authorize(ctx context.Context, header string, oauth bool) (tenant.Identity, error) {
	who, err := s.identify(ctx, header, oauth)
	if err == nil && who.Suspended {
		err = tenant.ErrSuspended
	}
	return who, err
}

// identify returns the owner of the token in an Authorization header. All
// headers without a valid token get the same Unauthorized error.
func (s *Server) identify(ctx context.Context, header string, oauth bool) (tenant.Identity, error) {
	scheme, token, _ := strings.Cut(header, " ")
	token = strings.TrimSpace(token)
	find := s.Tokens.Identify
	switch {
	case !strings.EqualFold(scheme, bearer):
		return tenant.Identity{}, unauthorized(nil)
	case oauth && s.OAuth != nil && tenant.AccessToken.Is(token):
		find = s.OAuth.Identify
	case !tenant.IsToken(token) && !tenant.KeyToken.Is(token):
		return tenant.Identity{}, unauthorized(nil)
	}
	hash := tenant.HashSecret(token)
	who, epoch, ok := s.Cache.get(hash)
	if ok {
		return who, nil
	}
	who, err := find(ctx, hash)
	if fault.Is(err, fault.Unauthorized) {
		return tenant.Identity{}, unauthorized(err)
	}
	if err != nil {
		return tenant.Identity{}, fmt.Errorf("identify token: %w", err)
	}
	s.Cache.put(hash, who, epoch)
	return who, nil
}

func unauthorized(cause error) error {
	return &fault.Error{Kind: fault.Unauthorized, Err: cause,
		Message: "a valid token is required: Authorization: Bearer <API_TOKEN>"}
}
