package dashboard

import (
	"context"
	"crypto/rand"
	"errors"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/oauth"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Config is what a Dashboard works with. Memories, Chats, Imports, Sessions, Access, Holdings
// and Edge are required.
type Config struct {
	Memories *memory.Service
	Chats    *chat.Service
	Imports  *importer.Service
	Sessions tenant.SessionStore
	Access   tenant.AccessStore
	Holdings tenant.HoldingStore
	Accounts *account.Service
	Edge     Edge
	Files    Files
	// Providers are the identity providers people may sign in with.
	Providers []*Provider
	// Programs lets users give programs access; nil: there is no page for it.
	Programs *oauth.Service
	Random   io.Reader        // of secrets; crypto/rand when nil
	Now      func() time.Time // time.Now when nil
}

// Edge is what the API server does for requests of any kind.
type Edge interface {
	// Named says which route a request is counted under.
	Named(c *fiber.Ctx, route string)
	// Address is where a request comes from, as far as proxies can be believed.
	Address(c *fiber.Ctx) string
	// Body returns a request's body, nil when it has none. What is left unread
	// ends the connection.
	Body(c *fiber.Ctx) io.Reader
	// Allow counts a request of the tenant's minute; RateLimited when none is left.
	Allow(ctx context.Context, who tenant.Identity) error
	// Explain returns the status and the sentence an error is answered with, and
	// the seconds to wait, and logs what is the server's fault.
	Explain(ctx context.Context, err error) (status int, message, retryAfter string)
}

// Files is what the API server does with whole files.
type Files interface {
	// Import takes in the file of a form that was sent and returns the import's id.
	Import(c *fiber.Ctx, who tenant.Identity) (string, error)
	// Export answers with all that the user has, as a zip.
	Export(c *fiber.Ctx, who tenant.Identity) error
}

// Dashboard answers the pages.
type Dashboard struct {
	Config
	pages  map[string]*template.Template
	assets map[string]asset
}

// New makes a Dashboard; it does no I/O.
func New(c Config) *Dashboard {
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	d := &Dashboard{Config: c, assets: readAssets()}
	d.pages = d.parsePages()
	return d
}

// Register adds the pages to a router, which answers what is none of them.
func (d *Dashboard) Register(app fiber.Router) {
	app.Get("/assets/:name", d.named(d.serveAsset))
	app.Get("/", d.named(d.home))
	app.Get("/sign-in", d.named(d.signInPage))
	app.Post("/sign-in", d.named(d.signIn))
	app.Get("/sign-in/with/:provider", d.named(d.leave))
	app.Get("/sign-in/callback", d.named(d.comeBack))
	app.Post("/sign-out", d.named(d.signOut))

	app.Get("/memories", d.signedIn(d.listMemories))
	app.Post("/memories", d.signedIn(d.addMemory))
	app.Post("/memories/delete", d.signedIn(d.deleteMemories))
	app.Post("/memories/move", d.signedIn(d.moveMemories))
	app.Get("/memories/:id", d.signedIn(d.showMemory))
	app.Post("/memories/:id", d.signedIn(d.editMemory))
	app.Post("/buckets", d.signedIn(d.addBucket))
	app.Get("/buckets/:id", d.signedIn(d.showBucket))
	app.Post("/buckets/:id", d.signedIn(d.editBucket))
	app.Post("/buckets/:id/delete", d.signedIn(d.deleteBucket))

	app.Get("/chats", d.signedIn(d.listChats))
	app.Post("/chats/mark", d.signedIn(d.markChats))
	app.Post("/chats/delete", d.signedIn(d.deleteChats))
	app.Post("/chats/import", d.signedIn(d.importFile))
	app.Get("/chats/imports", d.signedIn(d.listImports))
	app.Get("/chats/imports/:id", d.signedIn(d.showImport))
	app.Get("/chats/:id", d.signedIn(d.showChat))
	app.Get("/ask", d.signedIn(d.ask))

	app.Get("/connect", d.signedIn(d.showAccess))
	app.Get("/connect/apps", d.signedIn(d.showApps))
	app.Post("/connect/token", d.signedIn(d.replaceToken))
	if d.Programs != nil {
		app.Post("/connect/programs/end", d.signedIn(d.disconnect))
		app.Get(PathAuthorize, d.named(d.authorizePage))
		app.Post(PathAuthorize, d.signedIn(d.authorize))
	}

	app.Get("/usage", d.signedIn(d.showUsage))
	app.Post("/account/export", d.signedIn(d.export))
	app.Post("/account/erase", d.signedIn(d.erase))

	app.Use(d.missing)
}

// missing answers a reader who went where nothing is; programs are answered by
// the API.
func (d *Dashboard) missing(c *fiber.Ctx) error {
	err := c.Next()
	if fe, ok := errors.AsType[*fiber.Error](err); !ok || fe.Code != fiber.StatusNotFound ||
		strings.HasPrefix(c.Path(), "/api") || !strings.Contains(c.Get(fiber.HeaderAccept), fiber.MIMETextHTML) {
		return err
	}
	return d.named(func(c *fiber.Ctx) error {
		who, err := d.session(c)
		if err != nil {
			return err
		}
		return d.fail(c, who, fault.New(fault.NotFound, "check the address; the page may have been deleted"))
	})(c)
}

// named wraps a handler of a page that needs nobody signed in.
func (d *Dashboard) named(h func(c *fiber.Ctx) error) fiber.Handler {
	return func(c *fiber.Ctx) error {
		d.Edge.Named(c, c.Route().Path)
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

// signedIn wraps a handler of a page of a user. Who is not signed in is asked
// to, and comes back.
func (d *Dashboard) signedIn(h func(c *fiber.Ctx, who *tenant.Session) error) fiber.Handler {
	return d.named(func(c *fiber.Ctx) error {
		who, err := d.session(c)
		if err != nil {
			return err
		}
		if who == nil {
			return d.askToSignIn(c)
		}
		err = d.Edge.Allow(c.UserContext(), who.Identity)
		if err == nil {
			err = h(c, who)
		}
		if err != nil {
			return d.fail(c, who, err)
		}
		return nil
	})
}

// secure sets what every answer carries. No inline script or style is allowed,
// nothing comes from elsewhere, and nobody may frame a page.
func secure(c *fiber.Ctx) {
	c.Set(fiber.HeaderContentSecurityPolicy, policy("'self'"))
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	c.Set(fiber.HeaderReferrerPolicy, "same-origin")
	c.Set("Cross-Origin-Opener-Policy", openerPolicy(c.Path()))
	c.Set("Cross-Origin-Resource-Policy", "same-origin")
	c.Set(fiber.HeaderCacheControl, "no-store")
}

// policy is what a page may load, and where its forms may lead.
func policy(forms string) string {
	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
		"connect-src 'self'; form-action " + forms + "; base-uri 'none'; frame-ancestors 'none'"
}

// openerPolicy cuts pages off from those that opened them, except on the way of
// a program's request: an assistant's page may wait for the window it opened.
func openerPolicy(path string) string {
	if path == PathAuthorize || strings.HasPrefix(path, "/sign-in") {
		return "unsafe-none"
	}
	return "same-origin"
}
