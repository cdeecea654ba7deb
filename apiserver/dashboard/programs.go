package dashboard

import (
	"context"
	"net/url"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/oauth"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// program is one that has access, in the list of Connect → Access.
type program struct {
	oauth.Program
	Goes destination
}

// destination is where a program's access is sent.
type destination struct {
	Name  string // a host, or the whole address that an app opens
	Local bool   // it is on the machine of whoever gives the access
	App   bool   // whichever app opens the address: it alone decides where that leads
}

func destinationOf(redirect *url.URL) destination {
	switch redirect.Scheme {
	case "https":
		return destination{Name: redirect.Host}
	case "http": // others than the machine itself are not registered
		return destination{Name: redirect.Host, Local: true}
	default:
		return destination{Name: redirect.String(), App: true}
	}
}

// address is what a program is given that asks for access, as the server itself
// names it: programs compare the two. "" when they cannot ask.
func (d *Dashboard) address() string {
	if d.Programs == nil {
		return ""
	}
	return d.Programs.Resource
}

// programs returns those that the user gave access to.
func (d *Dashboard) programs(ctx context.Context, who tenant.Scope) ([]program, error) {
	if d.Programs == nil {
		return nil, nil
	}
	given, err := d.Programs.Programs(ctx, who)
	if err != nil {
		return nil, err
	}
	out := make([]program, 0, len(given))
	for _, p := range given {
		to, err := url.Parse(p.RedirectURI)
		if err != nil {
			return nil, err
		}
		out = append(out, program{p, destinationOf(to)})
	}
	return out, nil
}

// disconnect ends a program's access.
func (d *Dashboard) disconnect(c *fiber.Ctx, who *tenant.Session) error {
	form, err := d.form(c)
	if err != nil {
		return err
	}
	if err := d.Programs.Disconnect(c.UserContext(), who.Scope, form.Get("id")); err != nil {
		return err
	}
	return c.Redirect(withNotice("/connect", "disconnected"), fiber.StatusSeeOther)
}
