package dashboard

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/compress"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/oauth"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Config configures a Dashboard. Memories, Chats, Imports, Sessions, Access, UserTokens,
// Holdings and Server are required.
type Config struct {
	Memories *memory.Service
	Chats    *chat.Service
	Imports  *importer.Service
	Sessions tenant.SessionStore
	Access   tenant.AccessStore
	// UserTokens are the tokens that users create.
	UserTokens tenant.UserTokenStore
	Holdings   func(context.Context, tenant.Scope) (tenant.Holdings, error)
	Accounts   *account.Service
	Audit      audit.Store
	// Administration is for users who are administrators of their tenant.
	Administration Administration
	// Platform is for platform administrators. Required if a provider has some.
	Platform Platform
	Server   Server
	Files    Files
	// Providers are the identity providers for signing in.
	Providers []*Provider
	// SecretDetails tells users the namespace of the Kubernetes Secret with their token, and the
	// command that reads it, for installations whose users are administrators.
	SecretDetails bool
	// OAuth lets users grant access to OAuth clients; if nil, there is no consent page.
	OAuth *oauth.Service
	// DatabaseCell is that of the stores. Secrets carry it.
	DatabaseCell tenant.DatabaseCell
	Random       io.Reader        // source of secrets; crypto/rand if nil
	Now          func() time.Time // time.Now if nil
}

// Server is the part of the API server that the dashboard shares.
type Server interface {
	// SetRoute sets the route pattern of a request for metrics and traces.
	SetRoute(c *fiber.Ctx, route string)
	// ClientAddress returns the client address, considering trusted proxies.
	ClientAddress(c *fiber.Ctx) string
	// Body returns the body of a request, nil if it has none. The connection is
	// closed if it is not read completely.
	Body(c *fiber.Ctx) io.Reader
	// Allow counts a request toward the tenant's rate; RateLimited if it exceeds it.
	Allow(ctx context.Context, who tenant.Identity) error
	// HTTPError returns the status, message and Retry-After of an error, and logs
	// server errors.
	HTTPError(ctx context.Context, err error) (status int, message, retryAfter string)
}

// Files imports and exports files.
type Files interface {
	// Import stores the file of a form and returns the id of its import.
	Import(c *fiber.Ctx, who tenant.Identity) (ids []string, err error)
	// Export sends all data of the user as a zip.
	Export(c *fiber.Ctx, who tenant.Identity) error
	// ExportAudit sends the audit log of the user's tenant as JSON Lines.
	ExportAudit(c *fiber.Ctx, who tenant.Identity) error
}

// Dashboard serves the pages.
type Dashboard struct {
	Config
	languages languages
	assets    map[string]asset
}

// New returns a Dashboard. It does no I/O.
func New(c Config) *Dashboard {
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	d := &Dashboard{Config: c, assets: readAssets()}
	d.languages = newLanguages(scriptMessages(d.assets["app.js"].content))
	for _, l := range d.languages.byName {
		l.pages = d.pagesOf(l)
	}
	return d
}

// Register adds the pages to a router and renders its 404 errors for browsers.
func (d *Dashboard) Register(app fiber.Router) {
	app.Use(d.leaveForms)
	// Only these responses are compressed: their length reveals no secret.
	app.Get("/assets/:name", compress.New(), d.public(d.serveAsset))
	app.Get("/", d.public(d.home))
	app.Get("/sign-in", d.public(d.signInPage))
	app.Get("/t/:tenant", d.public(d.tenantSignInPage))
	app.Get("/t/:namespace/:tenant", d.public(d.tenantSignInPage))
	app.Post("/sign-in", d.public(d.signIn))
	app.Get(PathLink, d.public(d.linkPage))
	app.Post(PathLink, d.public(d.signInWithLink))
	app.Get("/sign-in/with/:provider", d.public(d.startSignIn))
	app.Get("/sign-in/callback", d.public(d.finishSignIn))
	app.Post("/sign-out", d.public(d.signOut))

	app.Post("/sample", d.signedIn(d.addSample))
	app.Post("/sample/remove", d.signedIn(d.removeSample))
	app.Get("/memories", d.signedIn(d.listMemories))
	app.Post("/memories", d.signedIn(d.addMemory))
	app.Post("/memories/delete", d.signedIn(d.deleteMemories))
	app.Post("/memories/undelete", d.signedIn(d.undeleteMemories))
	app.Post("/memories/move", d.signedIn(d.moveMemories))
	app.Get("/memories/:id", d.signedIn(d.showMemory))
	app.Post("/memories/:id", d.signedIn(d.editMemory))
	app.Post("/memories/:id/merge", d.signedIn(d.mergeMemories))
	app.Post("/memories/:id/unmerge", d.signedIn(d.unmergeMemories))
	app.Post("/buckets", d.signedIn(d.addBucket))
	app.Get("/buckets/:id", d.signedIn(d.showBucket))
	app.Post("/buckets/:id", d.signedIn(d.editBucket))
	app.Post("/buckets/:id/delete", d.signedIn(d.deleteBucket))

	app.Get("/chats", d.signedIn(d.listChats))
	app.Post("/chats/mark", d.signedIn(d.markChats))
	app.Post("/chats/delete", d.signedIn(d.deleteChats))
	app.Post("/chats/undelete", d.signedIn(d.undeleteChats))
	app.Post("/chats/import", d.signedIn(d.importFile))
	app.Get("/chats/imports", d.signedIn(d.listImports))
	app.Get("/chats/imports/:id", d.signedIn(d.showImport))
	app.Get("/chats/:id", d.signedIn(d.showChat))
	app.Get("/ask", d.signedIn(d.ask))
	app.Get("/search", d.signedIn(d.search))

	d.registerConnect(app)
	app.Get("/usage", d.signedIn(d.showUsage))
	app.Get("/activity", d.signedIn(d.showActivity))
	app.Get("/privacy", d.signedIn(d.showPrivacy))
	app.Post("/account/export", d.signedIn(d.export))
	app.Post("/account/erase", d.signedIn(d.erase))

	d.registerAdmin(app)
	d.registerPlatform(app)
	app.Use(d.notFound)
}

// registerConnect adds the pages about tokens, the password and connected apps.
func (d *Dashboard) registerConnect(app fiber.Router) {
	app.Get("/connect", d.signedIn(d.showAccess))
	app.Get("/connect/apps", d.signedIn(d.showApps))
	app.Post("/connect/token", d.signedIn(d.replaceToken))
	app.Post("/connect/password", d.signedIn(d.replacePassword))
	app.Post("/connect/tokens", d.signedIn(d.createToken))
	app.Post("/connect/tokens/revoke", d.signedIn(d.revokeToken))
	if d.OAuth != nil {
		app.Post("/connect/apps/disconnect", d.signedIn(d.disconnect))
		app.Get(PathAuthorize, d.public(d.authorizePage))
		app.Post(PathAuthorize, d.signedIn(d.authorize))
	}
}

// registerAdmin adds the pages for administrators of a tenant.
func (d *Dashboard) registerAdmin(app fiber.Router) {
	app.Get("/admin", d.administrator(d.showAdmin))
	app.Post("/admin/members/remove", d.administrator(d.removeMember))
	app.Post("/admin/members/restore", d.administrator(d.restoreMember))
	app.Post("/admin/audit", d.administrator(d.exportAudit))
}

// formPages are the pages to which the paths of forms belong, by the first segment of the path.
var formPages = map[string]string{
	"account": "/privacy", "admin": "/admin", "buckets": "/memories", "chats": "/chats", "connect": "/connect", "memories": "/memories",
	"platform": "/platform", "sample": "/memories", "sign-out": "/",
}

// leaveForms redirects a browser that opens the path of a form, for example after a sign-in, to the page of the form.
func (d *Dashboard) leaveForms(c *fiber.Ctx) error {
	segment, _, _ := strings.Cut(strings.TrimPrefix(c.Path(), "/"), "/")
	if to, known := formPages[segment]; known && isFormOnly(c) && strings.Contains(c.Get(fiber.HeaderAccept), fiber.MIMETextHTML) {
		secure(c)
		return c.Redirect(to, fiber.StatusSeeOther)
	}
	return c.Next()
}

// notFound renders a page for browsers; other clients get the error of the API.
func (d *Dashboard) notFound(c *fiber.Ctx) error {
	err := c.Next()
	if fe, ok := errors.AsType[*fiber.Error](err); !ok || fe.Code != fiber.StatusNotFound ||
		strings.HasPrefix(c.Path(), "/api") || !strings.Contains(c.Get(fiber.HeaderAccept), fiber.MIMETextHTML) {
		return err
	}
	return d.public(func(c *fiber.Ctx) error {
		who, err := d.session(c)
		if err != nil {
			return err
		}
		return d.fail(c, who, fault.New(fault.NotFound, "check the address; the page may have been deleted"))
	})(c)
}

// isFormOnly reports whether a request opens a path to which only forms are sent. Such a path may also match the pattern of a
// page, as /memories/delete matches /memories/:id.
func isFormOnly(c *fiber.Ctx) bool {
	if c.Method() != fiber.MethodGet {
		return false
	}
	page, form := "", ""
	for _, r := range c.App().GetRoutes(true) {
		switch {
		case r.Method == fiber.MethodGet && page == "" && fiber.RoutePatternMatch(c.Path(), r.Path):
			page = r.Path
		case r.Method == fiber.MethodPost && form == "" && fiber.RoutePatternMatch(c.Path(), r.Path):
			form = r.Path
		}
	}
	return form != "" && (page == "" || form == c.Path() && page != form)
}

// public wraps the handler of a page that requires no sign-in.
func (d *Dashboard) public(h func(c *fiber.Ctx) error) fiber.Handler {
	return func(c *fiber.Ctx) error {
		d.Server.SetRoute(c, c.Route().Path)
		secure(c)
		err := d.sameOrigin(c)
		if err == nil {
			err = h(c)
		}
		if err != nil {
			return d.fail(c, nil, err)
		}
		return nil
	}
}

// signedIn wraps the handler of a page that requires sign-in, and redirects to the
// sign-in page and back.
func (d *Dashboard) signedIn(h func(c *fiber.Ctx, who *tenant.Session) error) fiber.Handler {
	return d.public(func(c *fiber.Ctx) error {
		who, err := d.session(c)
		if err != nil {
			return err
		}
		if who == nil {
			return d.askToSignIn(c)
		}
		c.SetUserContext(tenant.WithActor(c.UserContext(), who.Actor))
		err = d.Server.Allow(c.UserContext(), who.Identity)
		if err == nil {
			err = h(c, who)
		}
		if err != nil {
			return d.fail(c, who, err)
		}
		return nil
	})
}

// secure sets the security headers: no inline scripts or styles, no third-party
// content, no framing.
func secure(c *fiber.Ctx) {
	c.Set(fiber.HeaderContentSecurityPolicy, policy("'self'"))
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	c.Set(fiber.HeaderReferrerPolicy, "same-origin")
	c.Set("Cross-Origin-Opener-Policy", openerPolicy(c.Path()))
	c.Set("Cross-Origin-Resource-Policy", "same-origin")
	c.Set(fiber.HeaderCacheControl, "no-store")
}

// policy returns the content security policy for a form-action.
func policy(forms string) string {
	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
		"connect-src 'self'; form-action " + forms + "; base-uri 'none'; frame-ancestors 'none'"
}

// openerPolicy isolates pages from their opener, except during an OAuth request:
// the client's page may wait for the window that it opened.
func openerPolicy(path string) string {
	if path == PathAuthorize || strings.HasPrefix(path, "/sign-in") {
		return "unsafe-none"
	}
	return "same-origin"
}
