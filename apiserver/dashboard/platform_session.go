package dashboard

import (
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// platformSessionLife is the lifetime of a session of a platform administrator.
	platformSessionLife = 8 * time.Hour

	platformCookie       = "mnemo_platform"
	securePlatformCookie = "__Host-mnemo_platform"
)

// registerPlatform adds the pages for platform administrators, if there are any.
func (d *Dashboard) registerPlatform(app fiber.Router) {
	if len(d.platformProviders()) == 0 {
		return
	}
	app.Get("/platform", d.public(d.showPlatform))
	app.Get("/platform/sign-in", d.public(d.platformSignInPage))
	app.Get("/platform/sign-in/:provider", d.public(d.startPlatformSignIn))
	app.Post("/platform/sign-out", d.public(d.platformSignOut))
}

// platformProviders returns the identity providers of platform administrators.
func (d *Dashboard) platformProviders() []providerLink {
	return slices.DeleteFunc(d.providers(), func(p providerLink) bool { return len(d.Providers[p.Number].PlatformAdministrators) == 0 })
}

// administers reports whether the provider's user sees the platform overview.
func (p *Provider) administers(issuer, email string) bool {
	return p.Issuer == issuer && slices.ContainsFunc(p.PlatformAdministrators, func(a string) bool { return strings.EqualFold(a, email) })
}

// platformSession returns the administrator of a request, nil if there is none. An
// administrator who was removed from the configuration has no session anymore.
func (d *Dashboard) platformSession(c *fiber.Ctx) (*tenant.PlatformAdministrator, error) {
	h, ok := cookieHash(c, platformCookie, securePlatformCookie)
	if !ok {
		return nil, nil //nolint:nilnil // no session is not an error
	}
	who, err := d.Platform.PlatformSession(c.UserContext(), h)
	if fault.Is(err, fault.Unauthorized) {
		return nil, nil //nolint:nilnil // as above
	}
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(d.Providers, func(p *Provider) bool { return p.administers(who.Issuer, who.Email) }) {
		return nil, nil //nolint:nilnil // as above
	}
	return &who, nil
}

func (d *Dashboard) platformSignInPage(c *fiber.Ctx) error {
	view := signInView{Platform: true, Providers: d.platformProviders()}
	return d.render(c, fiber.StatusOK, "signin", page{Title: msg("Platform overview"), Data: view})
}

func (d *Dashboard) startPlatformSignIn(c *fiber.Ctx) error {
	return d.redirectToProvider(c, attempt{Platform: true, Next: "/platform"}, maxAge(platformSessionLife))
}

// startPlatformSession starts the session of a user whom the provider has authenticated
// recently, if the user is a platform administrator. It creates no user.
func (d *Dashboard) startPlatformSession(c *fiber.Ctx, a attempt, user tenant.ExternalUser, authenticated time.Time) error {
	p := d.Providers[a.Provider]
	if authenticated.Before(d.Now().Add(-platformSessionLife - authLeeway)) {
		return d.signInFailed(c, a, fault.New(fault.Forbidden, "%s did not ask you to sign in again; contact your administrator", p.Name))
	}
	if !p.administers(user.Issuer, user.Email) {
		return d.signInFailed(c, a, fault.New(fault.Forbidden, "%s is not a platform administrator", user.Email))
	}
	secret, err := tenant.NewSession(d.DatabaseCell, d.Random)
	if err != nil {
		return err
	}
	err = d.Platform.SignInPlatform(c.UserContext(), tenant.PlatformSignIn{
		PlatformAdministrator: tenant.PlatformAdministrator(user),
		Address:               d.Server.ClientAddress(c), Session: tenant.HashSecret(secret), Lifetime: platformSessionLife,
	})
	if err != nil {
		return d.signInFailed(c, a, err)
	}
	if err := d.endPlatformSession(c); err != nil {
		return err
	}
	setCookie(c, platformCookie, securePlatformCookie, secret, d.Now().Add(platformSessionLife))
	return c.Redirect("/platform", fiber.StatusSeeOther)
}

// endPlatformSession ends the session of a request, if it has one.
func (d *Dashboard) endPlatformSession(c *fiber.Ctx) error {
	h, ok := cookieHash(c, platformCookie, securePlatformCookie)
	if !ok {
		return nil
	}
	return d.Platform.EndPlatformSession(c.UserContext(), h)
}

func (d *Dashboard) platformSignOut(c *fiber.Ctx) error {
	if err := d.endPlatformSession(c); err != nil {
		return err
	}
	setCookie(c, platformCookie, securePlatformCookie, "", time.Unix(0, 0))
	return c.Redirect("/platform/sign-in", fiber.StatusSeeOther)
}
