package dashboard

import (
	"context"
	"net/url"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/oauth"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// connectedApp is a connected app in the list of Connect → Access.
type connectedApp struct {
	oauth.ConnectedApp
	Goes destination
}

// destination is the redirect target of a client.
type destination struct {
	Name  string // a host, or the whole URI of an app
	Local bool   // on the user's computer
	App   bool   // a private-use URI scheme that some app handles
}

func destinationOf(redirect *url.URL) destination {
	switch redirect.Scheme {
	case "https":
		return destination{Name: redirect.Host}
	case "http": // only loopback addresses can be registered
		return destination{Name: redirect.Host, Local: true}
	default:
		return destination{Name: redirect.String(), App: true}
	}
}

// address returns the MCP URL for OAuth clients, exactly as in the resource
// metadata, because clients compare the two. "" if OAuth is disabled.
func (d *Dashboard) address() string {
	if d.OAuth == nil {
		return ""
	}
	return d.OAuth.Resource
}

// connectedApps returns the connected apps of the user.
func (d *Dashboard) connectedApps(ctx context.Context, who tenant.Scope) ([]connectedApp, error) {
	if d.OAuth == nil {
		return nil, nil
	}
	grants, err := d.OAuth.ConnectedApps(ctx, who)
	if err != nil {
		return nil, err
	}
	out := make([]connectedApp, 0, len(grants))
	for _, app := range grants {
		to, err := url.Parse(app.RedirectURI)
		if err != nil {
			return nil, err
		}
		out = append(out, connectedApp{app, destinationOf(to)})
	}
	return out, nil
}

// disconnect revokes the access of an app.
func (d *Dashboard) disconnect(c *fiber.Ctx, who *tenant.Session) error {
	form, err := d.form(c)
	if err != nil {
		return err
	}
	if err := d.OAuth.Disconnect(c.UserContext(), who.Scope, form.Get("id")); err != nil {
		return err
	}
	to := "/connect"
	if form.Get("back") == "activity" {
		to = "/activity"
	}
	return c.Redirect(withNotice(to, "disconnected"), fiber.StatusSeeOther)
}
