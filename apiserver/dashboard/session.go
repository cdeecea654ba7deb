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
	// sessionLife is how long one stays signed in.
	sessionLife = 7 * 24 * time.Hour

	cookieName = "mnemo_session"
	// secureCookie is the name behind TLS: browsers take it from this host only.
	secureCookie = "__Host-mnemo_session"
)

// begin keeps a new session's secret in the browser. Whatever signs people in
// ends here.
func (d *Dashboard) begin(c *fiber.Ctx, secret string) {
	d.setCookie(c, secret, d.Now().Add(sessionLife))
}

func (d *Dashboard) setCookie(c *fiber.Ctx, value string, expires time.Time) {
	setCookie(c, cookieName, secureCookie, value, expires)
}

// setCookie sets a cookie that only this host reads, under its secure name
// behind TLS.
func setCookie(c *fiber.Ctx, name, secure, value string, expires time.Time) {
	if overTLS(c) {
		name = secure
	}
	c.Cookie(&fiber.Cookie{
		Name: name, Value: value, Path: "/", Expires: expires,
		HTTPOnly: true, SameSite: fiber.CookieSameSiteLaxMode, Secure: overTLS(c),
	})
}

// session returns who is signed in, nil when nobody is.
func (d *Dashboard) session(c *fiber.Ctx) (*tenant.Session, error) {
	h, ok := sessionHash(c)
	if !ok {
		return nil, nil //nolint:nilnil // nobody is an answer here
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

func sessionHash(c *fiber.Ctx) (tenant.Hash, bool) {
	name := cookieName
	if overTLS(c) {
		name = secureCookie
	}
	value := c.Cookies(name)
	return tenant.HashSecret(value), value != ""
}

// overTLS reports whether the browser speaks TLS, to us or to a proxy. Who
// lies about it only makes their own cookie useless.
func overTLS(c *fiber.Ctx) bool {
	return c.Context().IsTLS() || strings.EqualFold(c.Get(fiber.HeaderXForwardedProto), "https")
}

// origin is where the browser sees us.
func origin(c *fiber.Ctx) string {
	if overTLS(c) {
		return "https://" + hostOf(c)
	}
	return "http://" + hostOf(c)
}

func hostOf(c *fiber.Ctx) string { return string(c.Request().URI().Host()) }

// sameOrigin refuses requests that change something and that another site sent.
// Browsers say so themselves, in Sec-Fetch-Site or at least in Origin.
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
