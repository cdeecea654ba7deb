package apiserver

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// originsAge is how long the origins of applications are cached.
const originsAge = 10 * time.Second

// corsAPI and corsMem0 are what scripts of other origins may do. The further headers of mem0's
// clients have no effect.
var (
	corsAPI = httpx.CORS{
		Methods: "GET, POST, PATCH, DELETE",
		Headers: strings.Join([]string{fiber.HeaderAuthorization, fiber.HeaderContentType, headerUser, httpx.HeaderIdempotencyKey,
			httpx.HeaderRequestID, headerLastEventID, "Mcp-Protocol-Version", "Mcp-Session-Id", "Mcp-Method", "Mcp-Name"}, ", "),
		Exposed: strings.Join([]string{httpx.HeaderRequestID, httpx.HeaderRateLimit, httpx.HeaderRateRemaining, httpx.HeaderRateReset,
			fiber.HeaderRetryAfter, fiber.HeaderLocation, headerDegraded, headerImport, fiber.HeaderWWWAuthenticate}, ", "),
	}
	corsMem0 = httpx.CORS{
		Methods: "GET, POST, PUT, DELETE",
		Headers: corsAPI.Headers + ", Mem0-User-Id, X-Mem0-Client, X-Mem0-Source, X-Application",
		Exposed: corsAPI.Exposed,
	}
)

// allowedOrigins are the origins of applications, from the store.
type allowedOrigins struct {
	mu      sync.Mutex
	origins []string
	until   time.Time
}

// cors sets the headers of the response to a script of another origin, and reports whether
// the request is a preflight of an allowed origin, which it has answered. Only configured
// origins are repeated. The origins of an application are allowed until authentication knows the key,
// so that its pages can read the error of a revoked one; see keepOrigin.
func (s *Server) cors(c *fiber.Ctx) (answered bool) {
	if !scriptable(c.Path()) {
		return false
	}
	c.Vary(fiber.HeaderOrigin)
	origin := c.Get(fiber.HeaderOrigin)
	if origin == "" || !s.allowsOrigin(c.UserContext(), origin) {
		return false
	}
	if isMem0(c.Path()) {
		return corsMem0.Allow(c, origin)
	}
	return corsAPI.Allow(c, origin)
}

// scriptable reports whether scripts of allowed origins may call a path: that of the API, of
// /mcp, or of its authorization, with which an assistant in a browser obtains its token.
func scriptable(path string) bool {
	switch path {
	case pathMCP, pathRegister, pathToken, pathRevoke:
		return true
	default:
		return strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/.well-known/oauth-") || isMem0(path)
	}
}

// allowsOrigin reports whether the server or an application allows an origin.
func (s *Server) allowsOrigin(ctx context.Context, origin string) bool {
	return slices.Contains(s.AllowedOrigins, origin) || slices.Contains(s.applicationOrigins(ctx), origin)
}

// applicationOrigins returns the origins that the applications of all tenants allow. If
// the store is unavailable, the last ones apply.
func (s *Server) applicationOrigins(ctx context.Context) []string {
	if s.Users == nil {
		return nil
	}
	s.origin.mu.Lock()
	defer s.origin.mu.Unlock()
	if time.Now().Before(s.origin.until) {
		return s.origin.origins
	}
	s.origin.until = time.Now().Add(originsAge)
	origins, err := s.Users.AllowedOrigins(ctx)
	if err != nil {
		s.Log.LogAttrs(ctx, slog.LevelWarn, "allowed origins not updated", slog.Any("error", err))
		return s.origin.origins
	}
	s.origin.origins = origins
	return origins
}

// keepOrigin withdraws the permission of an origin that neither the server nor the
// application of the key allows: that of another application.
func (s *Server) keepOrigin(c *fiber.Ctx, who tenant.Identity) {
	origin := c.Get(fiber.HeaderOrigin)
	if slices.Contains(s.AllowedOrigins, origin) || who.Application != nil && slices.Contains(who.Application.Origins, origin) {
		return
	}
	httpx.WithdrawOrigin(c)
}
