package dashboard

import (
	"fmt"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// accessView is Connect → Access.
type accessView struct {
	Token     *tenant.TokenInfo // nil when there never was one
	Secret    string            // the Kubernetes Secret of an operator's token
	Namespace string
	New       string    // a token just made: this is the only time it is seen
	Programs  []program // that have access, the newest first
	Address   string    // at which programs ask for it; "" when they cannot
}

// Valid reports whether there is a token that is accepted.
func (v accessView) Valid() bool { return v.Token != nil && v.Token.Fingerprint != "" }

// FromOperator reports whether the operator issued the token.
func (v accessView) FromOperator() bool {
	return v.Token != nil && v.Token.Issuer == tenant.IssuerOperator
}

func (d *Dashboard) showAccess(c *fiber.Ctx, who *tenant.Session) error {
	token, err := d.Access.Token(c.UserContext(), who.Scope)
	if err != nil {
		return err
	}
	programs, err := d.programs(c.UserContext(), who.Scope)
	if err != nil {
		return err
	}
	return d.renderAccess(c, who, token, "", programs)
}

func (d *Dashboard) renderAccess(c *fiber.Ctx, who *tenant.Session, token *tenant.TokenInfo, secret string, programs []program) error {
	return d.render(c, fiber.StatusOK, "access", page{
		Title: "Access", Section: "connect", Who: who,
		Data: accessView{
			Token: token, Secret: secretName(who.SignInName()), Namespace: who.Namespace, New: secret,
			Programs: programs, Address: d.address(),
		},
	})
}

// replaceToken makes a new token. The answer itself shows it: there is no page
// to come back to that would.
func (d *Dashboard) replaceToken(c *fiber.Ctx, who *tenant.Session) error {
	form, err := d.form(c)
	if err != nil {
		return err
	}
	if form.Get("confirmed") == "" {
		return fault.New(fault.Invalid, "tick the box to confirm, then regenerate")
	}
	secret, err := tenant.NewToken(d.Random)
	if err != nil {
		return fmt.Errorf("make token: %w", err)
	}
	// All that the page needs comes first: a token that no page shows is lost.
	programs, err := d.programs(c.UserContext(), who.Scope)
	if err != nil {
		return err
	}
	token, err := d.Access.ReplaceToken(c.UserContext(), who.Scope, tenant.HashSecret(secret))
	if err != nil {
		return err
	}
	return d.renderAccess(c, who, &token, secret, programs)
}

// appsView is Connect → Apps: settings to paste.
type appsView struct {
	URL   string
	Token string // what stands for the token
	// Address is what programs take that ask for access and need no token; ""
	// when they cannot ask.
	Address string
}

func (d *Dashboard) showApps(c *fiber.Ctx, who *tenant.Session) error {
	return d.render(c, fiber.StatusOK, "apps", page{Title: "Apps", Section: "connect", Who: who, Data: appsView{URL: origin(c), Token: "YOUR_TOKEN", Address: d.address()}})
}
