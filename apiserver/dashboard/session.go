package dashboard

import (
	"net/url"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// sessionLife is the lifetime of a session.
	sessionLife = 7 * 24 * time.Hour

	cookieName = "mnemo_session"
	// secureCookie is the cookie name over TLS, bound to this host by its prefix.
	secureCookie = "__Host-mnemo_session"
)

// replaceSession sets the cookie of a new session, ends the one that the browser had, for
// example of a user who authenticated again, and redirects.
func (d *Dashboard) replaceSession(c *fiber.Ctx, secret, next string) error {
	if old, ok := sessionHash(c); ok {
		if err := d.Sessions.EndSession(c.UserContext(), old); err != nil {
			return err
		}
	}
	d.setCookie(c, secret, d.Now().Add(sessionLife))
	return c.Redirect(next, fiber.StatusSeeOther)
}

func (d *Dashboard) setCookie(c *fiber.Ctx, value string, expires time.Time) {
	setCookie(c, cookieName, secureCookie, value, expires)
}

// setCookie sets a host-only cookie, under its secure name over TLS.
func setCookie(c *fiber.Ctx, name, secure, value string, expires time.Time) {
	if overTLS(c) {
		name = secure
	}
	c.Cookie(&fiber.Cookie{
		Name: name, Value: value, Path: "/", Expires: expires,
		HTTPOnly: true, SameSite: fiber.CookieSameSiteLaxMode, Secure: overTLS(c),
	})
}

// session returns the session of a request, nil if there is none.
func (d *Dashboard) session(c *fiber.Ctx) (*tenant.Session, error) {
	h, ok := sessionHash(c)
	if !ok {
		return nil, nil //nolint:nilnil // no session is not an error
	}
	who, err := d.Sessions.Session(c.UserContext(), h)
	if fault.Is(err, fault.Unauthorized) {
		return nil, nil //nolint:nilnil // as above
	}
	if err != nil {
		return nil, err
	}
	return &who, nil
}

func sessionHash(c *fiber.Ctx) (tenant.Hash, bool) { return cookieHash(c, cookieName, secureCookie) }

// cookieHash returns the hash of the secret in a cookie, which has its secure name over TLS.
func cookieHash(c *fiber.Ctx, name, secure string) (tenant.Hash, bool) {
	if overTLS(c) {
		name = secure
	}
	value := c.Cookies(name)
	return tenant.HashSecret(value), value != ""
}

// overTLS reports whether the browser uses TLS, to this server or to a proxy. A
// forged header only affects the client's own cookie.
func overTLS(c *fiber.Ctx) bool {
	return c.Context().IsTLS() || strings.EqualFold(c.Get(fiber.HeaderXForwardedProto), "https")
}

// origin returns the origin of this server as seen by the browser.
func origin(c *fiber.Ctx) string {
	if overTLS(c) {
		return "https://" + hostOf(c)
	}
	return "http://" + hostOf(c)
}

func hostOf(c *fiber.Ctx) string { return string(c.Request().URI().Host()) }

// sameOrigin rejects cross-site requests other than GET and HEAD, by Sec-Fetch-Site
// or Origin.
func (d *Dashboard) sameOrigin(c *fiber.Ctx) error {
	if c.Method() == fiber.MethodGet || c.Method() == fiber.MethodHead {
		return nil
	}
	if site := c.Get("Sec-Fetch-Site"); site != "" {
		if site == "same-origin" {
			return nil
		}
		return crossSite
	}
	if from, err := url.Parse(c.Get(fiber.HeaderOrigin)); err != nil || from.Host == "" || !strings.EqualFold(from.Host, hostOf(c)) {
		return crossSite
	}
	return nil
}

var crossSite = fault.New(fault.Forbidden, "this form was not sent from the dashboard; reload the page and try again")
