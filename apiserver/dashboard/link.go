package dashboard

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// PathLink is the page of one-time sign-in links. The code is in the fragment of the URL,
// which browsers do not send, so no log of a server or proxy contains it.
const PathLink = "/sign-in/link"

// linkView is the page of a one-time sign-in link.
type linkView struct{ Problem string }

// linkPage renders the form that app.js fills with the code and sends.
func (d *Dashboard) linkPage(c *fiber.Ctx) error {
	return d.render(c, fiber.StatusOK, "link", page{Title: msg("Sign in"), Data: linkView{}})
}

func (d *Dashboard) signInWithLink(c *fiber.Ctx) error {
	form, err := d.form(c)
	if err != nil {
		return err
	}
	secret, err := tenant.NewSession(d.DatabaseCell, d.Random)
	if err != nil {
		return err
	}
	err = d.Sessions.SignInWithLink(c.UserContext(), tenant.LinkSignIn{
		Link: tenant.HashSecret(strings.TrimSpace(form.Get("code"))), Address: d.Server.ClientAddress(c),
		Session: tenant.HashSecret(secret), Lifetime: sessionLife,
	})
	if fault.Is(err, fault.Unauthorized) { // the link of a user who is signed in may have been used to sign in
		if who, err := d.session(c); err == nil && who != nil {
			return c.Redirect("/memories", fiber.StatusSeeOther)
		}
	}
	if fault.Is(err, fault.Unauthorized) || fault.Is(err, fault.RateLimited) {
		status, text := d.problem(c, err)
		return d.render(c, status, "link", page{Title: msg("Sign in"), Data: linkView{text}})
	}
	if err != nil {
		return err
	}
	return d.replaceSession(c, secret, "/memories")
}
