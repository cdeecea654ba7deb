package apiserver

import (
	"context"
	"io"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/apiserver/dashboard"
	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// addDashboard registers the dashboard if its stores are configured.
func (s *Server) addDashboard() {
	if s.Sessions == nil {
		return
	}
	dashboard.New(dashboard.Config{
		Memories: s.Memories, Chats: s.Chats, Imports: s.Imports, Sessions: s.Sessions, Access: s.Access, UserTokens: s.UserTokens, Holdings: s.Holdings,
		Accounts: s.Accounts, Audit: s.Audit, Administration: s.Administration, Platform: s.Platform, SecretDetails: s.SecretDetails, DatabaseCell: s.DatabaseCell, Server: dashboardServer{s}, Files: dashboardServer{s}, Providers: s.Providers, OAuth: s.OAuth,
	}).Register(s.app)
}

// dashboardServer gives the dashboard access to what it shares with the API.
type dashboardServer struct{ *Server }

var (
	_ dashboard.Server = dashboardServer{}
	_ dashboard.Files  = dashboardServer{}
)

// SetRoute implements dashboard.Server.
func (dashboardServer) SetRoute(c *fiber.Ctx, route string) { c.Locals(localRoute, route) }

// ClientAddress implements dashboard.Server.
func (e dashboardServer) ClientAddress(c *fiber.Ctx) string { return e.proxies.Address(c) }

// Body implements dashboard.Server.
func (dashboardServer) Body(c *fiber.Ctx) io.Reader {
	if b := httpx.RequestBody(c); b != nil {
		return b
	}
	return nil
}

// Allow implements dashboard.Server.
func (e dashboardServer) Allow(ctx context.Context, who tenant.Identity) error {
	if _, err := e.permit(ctx, who); err != nil {
		return err
	}
	return e.begin(ctx, who)
}

// HTTPError implements dashboard.Server.
func (e dashboardServer) HTTPError(ctx context.Context, err error) (status int, message, retryAfter string) {
	a := e.toHTTPError(ctx, err)
	if fault.Is(err, fault.Internal) {
		a.Message += " " + a.RequestID
	}
	return a.GetStatus(), a.Message, a.GetHeaders().Get(fiber.HeaderRetryAfter)
}

// Import implements dashboard.Files.
func (e dashboardServer) Import(c *fiber.Ctx, who tenant.Identity) ([]string, error) {
	parts, err := e.formParts(c)
	if err != nil {
		return nil, err
	}
	f, err := e.storeUploads(c.UserContext(), who, parts)
	if err != nil {
		return nil, err
	}
	return f.ids, nil
}

// Export implements dashboard.Files.
func (e dashboardServer) Export(c *fiber.Ctx, who tenant.Identity) error {
	send, err := e.openExport(c.UserContext(), who)
	if err != nil {
		return err
	}
	send(c)
	return nil
}

// ExportAudit implements dashboard.Files.
func (e dashboardServer) ExportAudit(c *fiber.Ctx, who tenant.Identity) error {
	send, err := e.openAuditExport(c.UserContext(), who)
	if err != nil {
		return err
	}
	send(c)
	return nil
}
