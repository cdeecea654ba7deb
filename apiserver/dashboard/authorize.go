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

// PathAuthorize is where a program sends its user to ask for access.
const PathAuthorize = "/authorize"

// authorizeView is the page on which a user gives a program access, or does not.
type authorizeView struct {
	Program string // as it calls itself
	Goes    destination
	As, Of  string // the user and the tenant
	Fields  []field
	Problem string // with the answer that was given
}

// field is a hidden field: what the program asked, to be checked again.
type field struct{ Name, Value string }

// forUser is the field that says whom the page named: who answers it is to be
// that user, whoever signed in meanwhile.
const forUser = "for"

// asked are the parameters of a program's request.
var asked = []string{"client_id", "redirect_uri", "response_type", "state", "code_challenge", "code_challenge_method", "resource"}

// check reads a program's request.
func (d *Dashboard) check(c *fiber.Ctx, v url.Values) (oauth.Ask, error) {
	for _, name := range asked {
		if len(v[name]) > 1 && name != "resource" {
			return oauth.Ask{}, fault.New(fault.Invalid, "the app sent %s twice; contact its developer", name)
		}
	}
	ask, err := d.Programs.Check(c.UserContext(), oauth.Request{
		ClientID: v.Get("client_id"), RedirectURI: v.Get("redirect_uri"), ResponseType: v.Get("response_type"), State: v.Get("state"),
		Challenge: v.Get("code_challenge"), ChallengeMethod: v.Get("code_challenge_method"), Resources: v["resource"],
	})
	if e, ok := errors.AsType[*oauth.Error](err); ok {
		return oauth.Ask{}, fault.New(fault.Invalid, "the app sent an invalid access request: %s", e.Description)
	}
	return ask, err
}

// authorizePage asks the user. What the program asks is looked at before anyone
// signs in.
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
	return d.askUser(c, fiber.StatusOK, who, ask, v, "")
}

// askUser shows the page that asks, with what was wrong with the answer to it.
func (d *Dashboard) askUser(c *fiber.Ctx, status int, who *tenant.Session, ask oauth.Ask, v url.Values, problem string) error {
	to, err := url.Parse(ask.RedirectURI)
	if err != nil {
		return err
	}
	view := authorizeView{
		Program: ask.Client.Name, Goes: destinationOf(to), As: who.Who(), Of: cmp.Or(who.DisplayName, who.TenantName),
		Fields: []field{{forUser, who.SignInName().String()}}, Problem: problem,
	}
	for _, name := range asked {
		for _, value := range v[name] {
			view.Fields = append(view.Fields, field{name, value})
		}
	}
	// Browsers hold a form's redirects to the policy too.
	c.Set(fiber.HeaderContentSecurityPolicy, policy("'self' "+sourceOf(to)))
	return d.render(c, status, "authorize", page{Title: "Allow access", Data: view})
}

// sourceOf is an address as a content security policy names it, which has no
// form for IPv6.
func sourceOf(to *url.URL) string {
	if to.Scheme != "https" && to.Scheme != "http" || strings.Contains(to.Host, "[") {
		return to.Scheme + ":"
	}
	return to.Scheme + "://" + to.Host
}

// authorize takes the user's answer to the program.
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
		to, err := d.Programs.Refuse(ask)
		if err != nil {
			return err
		}
		return c.Redirect(to, fiber.StatusSeeOther)
	}
	switch {
	case form.Get(forUser) != who.SignInName().String():
		return d.askUser(c, fiber.StatusConflict, who, ask, form, "You are now signed in as a different user. Check the account below and answer again.")
	case form.Get("asked") == "": // two clicks, so that no page can have a person take them for one of its own
		return d.askUser(c, fiber.StatusBadRequest, who, ask, form, "Tick the box if you just asked this app to connect. Otherwise, choose Deny.")
	}
	session, _ := sessionHash(c)
	to, err := d.Programs.Approve(c.UserContext(), who.Scope, session, ask)
	if err != nil {
		return err
	}
	return c.Redirect(to, fiber.StatusSeeOther)
}
