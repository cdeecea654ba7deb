package dashboard

import (
	"fmt"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// hasPassword reports whether the user signs in with a password.
func hasPassword(who *tenant.Session) bool { return who.Issuer == "" }

// replacePassword creates a new password and shows it in the response, because it cannot
// be shown again.
func (d *Dashboard) replacePassword(c *fiber.Ctx, who *tenant.Session) error {
	form, err := d.form(c)
	if err != nil {
		return err
	}
	if !hasPassword(who) {
		return fault.New(fault.Forbidden, "you have no password here; change it at your identity provider")
	}
	if form.Get("confirmed") == "" {
		return fault.New(fault.Invalid, "tick the box to confirm, then create the password")
	}
	if !d.recent(who) {
		return authenticateAgain(c, "/connect")
	}
	password, err := tenant.NewPassword(d.Random)
	if err != nil {
		return fmt.Errorf("create password: %w", err)
	}
	// Load everything for the page first: a password that is not shown is lost.
	view, err := d.accessOf(c, who)
	if err != nil {
		return err
	}
	if view.Token, err = d.Access.Token(c.UserContext(), who.Scope); err != nil {
		return err
	}
	session, _ := sessionHash(c)
	if err := d.Access.ReplacePassword(c.UserContext(), who.Scope, session, tenant.HashSecret(password)); err != nil {
		return err
	}
	view.Tokens, view.Apps, view.NewPassword = nil, nil, password // the others ended
	return d.renderAccess(c, who, view)
}
