package dashboard

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// providerLink is an identity provider on the sign-in page.
type providerLink struct {
	Number int
	Name   string
}

// signInView is the sign-in page.
type signInView struct {
	Name      string
	Tenant    string // of the address, tenant or namespace/tenant; its users enter their own name only
	Next      string // path after sign-in
	Password  bool   // show the form
	Providers []providerLink
	Problem   string
	Again     bool // the user is signed in and must authenticate again
	Platform  bool // of the platform overview
}

func (d *Dashboard) home(c *fiber.Ctx) error {
	return c.Redirect("/memories", fiber.StatusSeeOther)
}

func (d *Dashboard) signInPage(c *fiber.Ctx) error {
	who, err := d.session(c)
	if err != nil {
		return err
	}
	next := localPath(c.Query("next"), "/memories")
	again := c.Query("again") != ""
	if who != nil && !again {
		return c.Redirect(next, fiber.StatusSeeOther)
	}
	view := d.signInViewOf(who, next)
	view.Tenant = tenantOf(c)
	return d.render(c, fiber.StatusOK, "signin", page{Title: msg("Sign in"), Data: view})
}

// tenantSignInPage is the sign-in page of a tenant. It is the same for a tenant that does
// not exist, so that nobody learns the names of tenants.
func (d *Dashboard) tenantSignInPage(c *fiber.Ctx) error {
	if _, ok := tenant.ParseSignInName(tenantOf(c) + "/user"); !ok {
		return fault.New(fault.NotFound, "check the address; a tenant has a name of lower-case letters, digits, dots and hyphens")
	}
	return d.signInPage(c)
}

// tenantOf returns the tenant in the address of a sign-in page, "" if it has none.
func tenantOf(c *fiber.Ctx) string {
	name := c.Params("tenant")
	if namespace := c.Params("namespace"); namespace != "" {
		name = namespace + "/" + name
	}
	return name
}

// signInViewOf returns the sign-in page. A user who must authenticate again sees only
// the way in which they signed in.
func (d *Dashboard) signInViewOf(who *tenant.Session, next string) signInView {
	view := signInView{Next: next, Password: true, Providers: d.providers()}
	if who == nil {
		return view
	}
	view.Again = true
	if own := d.providerOf(who); own != nil {
		view.Password = false
		view.Providers = slices.DeleteFunc(view.Providers, func(p providerLink) bool { return d.Providers[p.Number] != own })
	} else {
		view.Name, view.Providers = who.SignInName().String(), nil
	}
	return view
}

// askToSignIn redirects to the sign-in page and back; app.js gets an error instead.
func (d *Dashboard) askToSignIn(c *fiber.Ctx) error {
	if isScript(c) {
		return fault.New(fault.Unauthorized, "you have been signed out; sign in again")
	}
	target, next := "/sign-in", c.OriginalURL()
	if c.Method() != fiber.MethodGet {
		next = pageOf(c)
	}
	if next != "" {
		target += "?next=" + url.QueryEscape(next)
	}
	return c.Redirect(target, fiber.StatusSeeOther)
}

func (d *Dashboard) signIn(c *fiber.Ctx) error {
	form, err := d.form(c)
	if err != nil {
		return err
	}
	view := signInView{Name: strings.TrimSpace(form.Get("name")), Tenant: form.Get("tenant"), Next: localPath(form.Get("next"), "/memories")}
	name := view.Name
	if view.Tenant != "" && !strings.Contains(name, "/") {
		name = view.Tenant + "/" + name
	}
	secret, err := d.authenticate(c, name, form.Get("password"))
	if err != nil {
		return d.renderSignInError(c, view, err)
	}
	return d.replaceSession(c, secret, view.Next)
}

// renderSignInError renders the sign-in page with an error.
func (d *Dashboard) renderSignInError(c *fiber.Ctx, view signInView, err error) error {
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.Kind == fault.Internal {
		return err
	}
	if view.Platform {
		view.Providers = d.platformProviders()
	} else {
		view.Password, view.Providers = true, d.providers()
	}
	var status int
	status, view.Problem = d.problem(c, err)
	return d.render(c, status, "signin", page{Title: msg("Sign in"), Data: view})
}

// authenticate starts a session with name and password and returns its secret.
func (d *Dashboard) authenticate(c *fiber.Ctx, signInName, password string) (string, error) {
	name, ok := tenant.ParseSignInName(signInName)
	if !ok {
		return "", fault.New(fault.Invalid, "the name must be tenant/user, such as acme/alice")
	}
	if password == "" {
		return "", fault.New(fault.Invalid, "enter your password")
	}
	secret, err := tenant.NewSession(d.DatabaseCell, d.Random)
	if err != nil {
		return "", err
	}
	return secret, d.Sessions.SignIn(c.UserContext(), tenant.SignIn{
		Name: name, Password: tenant.HashSecret(strings.TrimSpace(password)), Address: d.Server.ClientAddress(c),
		Session: tenant.HashSecret(secret), Lifetime: sessionLife,
	})
}

// secretName returns the Kubernetes Secret with the token and password of a user.
func secretName(n tenant.SignInName) string { return n.Tenant + "-" + n.User + "-access" }

func (d *Dashboard) signOut(c *fiber.Ctx) error {
	who, err := d.session(c)
	if err != nil {
		return err
	}
	if h, ok := sessionHash(c); ok {
		if err := d.Sessions.EndSession(c.UserContext(), h); err != nil {
			return err
		}
	}
	d.setCookie(c, "", time.Unix(0, 0))
	if to := d.endSession(c, who); to != "" {
		// A redirect would be blocked, because forms may only lead to this site.
		c.Set("Refresh", "0; url="+to)
		return d.render(c, fiber.StatusOK, "signout", page{Title: msg("Signed out"), Data: to})
	}
	return c.Redirect("/sign-in", fiber.StatusSeeOther)
}

// endSession returns the address that ends the provider's session too (OpenID Connect
// RP-Initiated Logout); "" if there is none.
func (d *Dashboard) endSession(c *fiber.Ctx, who *tenant.Session) string {
	if who == nil {
		return ""
	}
	p := d.providerOf(who)
	if p == nil || !p.EndSession {
		return ""
	}
	found, err := p.discover(c.UserContext(), d.Now)
	if err != nil {
		return "" // the session here has ended anyway
	}
	m, err := metadataOf(found)
	if err != nil || m.EndSession == "" {
		return ""
	}
	to, err := url.Parse(m.EndSession)
	if err != nil {
		return ""
	}
	q := to.Query()
	q.Set("client_id", p.ClientID)
	q.Set("post_logout_redirect_uri", origin(c)+"/sign-in")
	to.RawQuery = q.Encode()
	return to.String()
}
