package apiserver

import (
	"context"
	"io"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/apiserver/dashboard"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// addDashboard registers the pages for people, if there are stores for them.
func (s *Server) addDashboard() {
	if s.Sessions == nil {
		return
	}
	dashboard.New(dashboard.Config{
		Memories: s.Memories, Chats: s.Chats, Imports: s.Imports, Sessions: s.Sessions, Access: s.Access, Holdings: s.Holdings,
		Accounts: s.Accounts, Edge: dashboardEdge{s}, Files: dashboardEdge{s}, Providers: s.Providers, Programs: s.Programs,
	}).Register(s.app)
}

// dashboardEdge is what pages share with the API.
type dashboardEdge struct{ *Server }

var (
	_ dashboard.Edge  = dashboardEdge{}
	_ dashboard.Files = dashboardEdge{}
)

// Named implements dashboard.Edge.
func (dashboardEdge) Named(c *fiber.Ctx, route string) { c.Locals(localRoute, route) }

// Address implements dashboard.Edge.
func (e dashboardEdge) Address(c *fiber.Ctx) string { return e.address(c) }

// Body implements dashboard.Edge.
func (dashboardEdge) Body(c *fiber.Ctx) io.Reader {
	if b := requestBody(c); b != nil {
		return b
	}
	return nil
}

// Allow implements dashboard.Edge.
func (e dashboardEdge) Allow(ctx context.Context, who tenant.Identity) error {
	_, err := e.permit(ctx, who)
	return err
}

// Explain implements dashboard.Edge.
func (e dashboardEdge) Explain(ctx context.Context, err error) (status int, message, retryAfter string) {
	a := e.answerFor(ctx, err)
	if fault.Is(err, fault.Internal) {
		a.Message += " (" + a.RequestID + ")"
	}
	return a.status, a.Message, a.headers.Get(fiber.HeaderRetryAfter)
}

// Import implements dashboard.Files.
func (e dashboardEdge) Import(c *fiber.Ctx, who tenant.Identity) (string, error) {
	parts, err := e.partsOf(c)
	if err != nil {
		return "", err
	}
	return e.takeFile(c.UserContext(), who, parts)
}

// Export implements dashboard.Files.
func (e dashboardEdge) Export(c *fiber.Ctx, who tenant.Identity) error {
	send, err := e.openExport(c.UserContext(), who)
	if err != nil {
		return err
	}
	send(c)
	return nil
}
