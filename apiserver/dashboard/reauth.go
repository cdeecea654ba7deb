package dashboard

import (
	"net/url"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// recentLife is the maximum age of the authentication when a user creates a token,
// allows an app access or erases data. A session alone does not suffice, because an
// unattended computer may have one.
const recentLife = 10 * time.Minute

// recent reports whether the user proved their identity recently.
func (d *Dashboard) recent(who *tenant.Session) bool {
	return !who.AuthenticatedAt.IsZero() && d.Now().Sub(who.AuthenticatedAt) <= recentLife
}

// authenticateAgain redirects to the sign-in page, which leads back to a path.
func authenticateAgain(c *fiber.Ctx, next string) error {
	if isScript(c) {
		return fault.New(fault.Forbidden, "sign in again to confirm that it’s you")
	}
	return c.Redirect("/sign-in?again=yes&next="+url.QueryEscape(next), fiber.StatusSeeOther)
}

// providerOf returns the identity provider of a user; nil if there is none.
func (d *Dashboard) providerOf(who *tenant.Session) *Provider {
	for _, p := range d.Providers {
		if who.Issuer != "" && p.Issuer == who.Issuer {
			return p
		}
	}
	return nil
}
