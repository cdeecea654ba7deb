package dashboard

import (
	"cmp"
	"errors"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/oauth"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// PathAuthorize is the path of the OAuth consent page.
const PathAuthorize = "/authorize"

// authorizeView is the OAuth consent page.
type authorizeView struct {
	App     string // the name chosen by the client
	Goes    destination
	As, Of  string // the user and the tenant
	Fields  []field
	Problem string // with the submitted form
}

// field is a hidden form field with a parameter of the request.
type field struct{ Name, Value string }

// forUser is the field with the user shown on the page. The form is rejected if
// another user has signed in since.
const forUser = "for"

// authorizeParams are the parameters of an authorization request.
var authorizeParams = []string{"client_id", "redirect_uri", "response_type", "state", "code_challenge", "code_challenge_method", "resource"}

// check validates an authorization request.
func (d *Dashboard) check(c *fiber.Ctx, v url.Values) (oauth.Ask, error) {
	for _, name := range authorizeParams {
		if len(v[name]) > 1 && name != "resource" {
			return oauth.Ask{}, fault.New(fault.Invalid, "the app sent %s twice; contact its developer", name)
		}
	}
	ask, err := d.OAuth.Check(c.UserContext(), oauth.Request{
		ClientID: v.Get("client_id"), RedirectURI: v.Get("redirect_uri"), ResponseType: v.Get("response_type"), State: v.Get("state"),
		Challenge: v.Get("code_challenge"), ChallengeMethod: v.Get("code_challenge_method"), Resources: v["resource"],
	})
	if e, ok := errors.AsType[*oauth.Error](err); ok {
		return oauth.Ask{}, fault.New(fault.Invalid, "the app sent an invalid access request: %s", e.Description)
	}
	return ask, err
}

// authorizePage shows the consent page. The request is validated before sign-in.
func (d *Dashboard) authorizePage(c *fiber.Ctx) error {
	v, err := url.ParseQuery(string(c.Request().URI().QueryString()))
	if err != nil {
		return fault.New(fault.Invalid, "the app sent an invalid access request")
	}
	ask, err := d.check(c, v)
	if err != nil {
		return err
	}
	who, err := d.session(c)
	if err != nil {
		return err
	}
	if who == nil {
		return d.askToSignIn(c)
	}
	return d.renderAuthorize(c, fiber.StatusOK, who, ask, v, message{})
}

// renderAuthorize renders the consent page, with a problem of the submitted form.
func (d *Dashboard) renderAuthorize(c *fiber.Ctx, status int, who *tenant.Session, ask oauth.Ask, v url.Values, problem message) error {
	to, err := url.Parse(ask.RedirectURI)
	if err != nil {
		return err
	}
	view := authorizeView{
		App: ask.Client.Name, Goes: destinationOf(to), As: who.Who(), Of: cmp.Or(who.DisplayName, who.TenantName),
		Fields: []field{{forUser, who.SignInName().String()}}, Problem: d.languages.of(c).say(problem),
	}
	for _, name := range authorizeParams {
		for _, value := range v[name] {
			view.Fields = append(view.Fields, field{name, value})
		}
	}
	// Browsers apply form-action to redirects as well.
	c.Set(fiber.HeaderContentSecurityPolicy, policy("'self' "+sourceOf(to)))
	return d.render(c, status, "authorize", page{Title: msg("Allow access"), Data: view})
}

// requestOf returns the parameters of the authorization request in a consent form.
func requestOf(form url.Values) url.Values {
	v := url.Values{}
	for _, name := range authorizeParams {
		if form.Has(name) {
			v[name] = form[name]
		}
	}
	return v
}

// sourceOf returns the CSP source of a URL. CSP has no syntax for IPv6 addresses.
func sourceOf(to *url.URL) string {
	if to.Scheme != "https" && to.Scheme != "http" || strings.Contains(to.Host, "[") {
		return to.Scheme + ":"
	}
	return to.Scheme + "://" + to.Host
}

// authorize handles the submitted consent form.
func (d *Dashboard) authorize(c *fiber.Ctx, who *tenant.Session) error {
	form, err := d.form(c)
	if err != nil {
		return err
	}
	ask, err := d.check(c, form)
	if err != nil {
		return err
	}
	if form.Get("answer") != "allow" {
		to, err := d.OAuth.Deny(ask)
		if err != nil {
			return err
		}
		return c.Redirect(to, fiber.StatusSeeOther)
	}
	switch {
	case form.Get(forUser) != who.SignInName().String():
		return d.renderAuthorize(c, fiber.StatusConflict, who, ask, form, msg("You are now signed in as a different user. Check the account below, then choose again."))
	case form.Get("asked") == "": // two interactions, as protection against clickjacking
		return d.renderAuthorize(c, fiber.StatusBadRequest, who, ask, form, msg("Tick the box if you just asked this app to connect. Otherwise, choose Deny."))
	}
	if !d.recent(who) {
		return authenticateAgain(c, PathAuthorize+"?"+requestOf(form).Encode())
	}
	session, _ := sessionHash(c)
	to, err := d.OAuth.Approve(c.UserContext(), who.Scope, session, ask)
	if err != nil {
		return err
	}
	return c.Redirect(to, fiber.StatusSeeOther)
}
