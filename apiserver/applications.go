package apiserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"net/url"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// headerUser names the user for whom an application acts with its key.
const headerUser = "X-Mnemo-User"

// errUserRequired rejects a request with an application key that names no user.
var errUserRequired error = fault.New(fault.Invalid, "header %s is required with an application key: it names the user of the application", headerUser)

// errUserRefused rejects the header with the token of a user, who would otherwise
// receive another user's request.
var errUserRefused error = fault.New(fault.Invalid, "header %s must only be sent with an application key; this token acts for its own user", headerUser)

// actingKey is the context key of the name of the user for whom an application acts.
type actingKey struct{}

// withUser returns a context with the user of the header.
func withUser(ctx context.Context, who tenant.Identity, header string) (context.Context, error) {
	switch {
	case who.Application == nil && header != "":
		return nil, errUserRefused
	case header == "":
		return ctx, nil
	}
	return context.WithValue(ctx, actingKey{}, header), tenant.CheckApplicationUser("header "+headerUser, header)
}

// checkAccess returns the huma middleware, after authenticate, that rejects credentials
// without the route's scope, and requires that application keys name a user, except on
// the routes of the whole tenant.
func (s *Server) checkAccess(required tenant.Access) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		who, _ := ctx.Context().Value(identityKey{}).(tenant.Identity)
		err := who.Access.Require(required)
		acting := ctx.Context()
		if err == nil {
			acting, err = withUser(acting, who, ctx.Header(headerUser))
		}
		if err == nil && who.Application != nil && required != tenant.AccessAdmin && ctx.Header(headerUser) == "" {
			err = errUserRequired
		}
		setReads(httpx.FiberContext(ctx), required)
		if err == nil {
			err = s.begin(acting, who)
		}
		if err != nil {
			s.abort(ctx, err)
			return
		}
		next(huma.WithContext(ctx, acting))
	}
}

// actForHeader returns the identity of a request: that of the token's user, or of the
// user whom the header names.
func (s *Server) actForHeader(ctx context.Context, who tenant.Identity, required tenant.Access, create bool) (tenant.Identity, error) {
	if who.Application == nil || required == tenant.AccessAdmin {
		return who, nil
	}
	user, ok := ctx.Value(actingKey{}).(string)
	if !ok {
		return tenant.Identity{}, errUserRequired
	}
	return s.actFor(ctx, who, user, create)
}

// actFor returns the identity with which an application acts for one of its users. An
// unknown user is created, or without create has an empty account. The name is that of
// the header, or of whichever field of a protocol names the user.
func (s *Server) actFor(ctx context.Context, who tenant.Identity, user string, create bool) (tenant.Identity, error) {
	if who.Application == nil {
		return tenant.Identity{}, fault.New(fault.Forbidden, "only an application key can act for a user")
	}
	if err := tenant.CheckApplicationUser("the user", user); err != nil {
		return tenant.Identity{}, err
	}
	// The key was found before, so the entry needs no check of its own.
	key := actingHash(who.Tenant, user)
	acting, epoch, ok := s.Cache.get(key)
	if !ok || create { // a write must not act for a user whom another replica has erased
		found, err := s.Users.ActFor(ctx, who, user, create)
		if err != nil {
			return tenant.Identity{}, err
		}
		acting = tenant.Identity{Scope: found.Scope, Placement: found.Placement, Generation: found.Generation}
		if found.User != tenant.NoUser { // another replica may create the user
			s.Cache.put(key, acting, epoch)
		}
	}
	who.Scope, who.Placement, who.Generation, who.UserName = acting.Scope, acting.Placement, acting.Generation, user
	return who, nil
}

// actingHash is the key of a user of applications in the cache.
func actingHash(id tenant.ID, user string) tenant.Hash {
	return sha256.Sum256([]byte("user\x00" + string(id) + "\x00" + user))
}

// pathUsers are the routes that name a user in the path.
const pathUsers = "/api/users/"

// keepUserEncoded leaves the name of a user or of an entity of mem0 in the path encoded,
// because it may contain a slash, and reports whether the path has one. The handlers decode
// it.
func keepUserEncoded(c *fiber.Ctx) bool {
	path, _, _ := bytes.Cut(c.Request().Header.RequestURI(), []byte("?"))
	before, name, ok := entityName(path)
	if !ok {
		before = []byte(pathUsers)
		name, ok = bytes.CutPrefix(path, before)
	}
	if ok {
		c.Path(string(fasthttp.AppendQuotedArg(before, name)))
	}
	return ok && !bytes.Contains(name, []byte("/"))
}

// userOf decodes the name of a stored user in the path.
func userOf(encoded string) (string, error) {
	name, err := url.PathUnescape(encoded)
	if err != nil {
		return "", fault.New(fault.Invalid, "user must be percent-encoded")
	}
	return name, tenant.CheckUserPosition("user", name)
}

// scopeText documents the scope that a route requires.
func scopeText(required tenant.Access) string {
	switch required {
	case tenant.AccessAdmin:
		return "Scope: `admin` of an application key."
	case tenant.AccessTokens:
		return "Scope: `admin` of a user's token."
	}
	return "Scope: `" + strings.Join(required.Names(), "`, `") + "`."
}
