package dashboard

import (
	"fmt"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// accessView is Connect → Access.
type accessView struct {
	Token     *tenant.TokenInfo  // nil if none was ever created
	Tokens    []tenant.UserToken // that the user created, newest first
	Secret    string             // the name of the Kubernetes Secret of a token issued by the operator
	Namespace string             // of the Secret; "" if the page must not mention Kubernetes
	New       string             // a new token, shown only once
	Apps      []connectedApp     // connected clients, newest first
	Address   string             // MCP URL for OAuth clients; "" if OAuth is disabled
	// SignInName is the name to sign in with; "" without a password.
	SignInName  string
	NewPassword string // shown only once
}

// Valid reports whether there is an active token.
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
	view, err := d.accessOf(c, who)
	if err != nil {
		return err
	}
	view.Token = token
	return d.renderAccess(c, who, view)
}

// accessOf returns the view without the issued token.
func (d *Dashboard) accessOf(c *fiber.Ctx, who *tenant.Session) (accessView, error) {
	apps, err := d.connectedApps(c.UserContext(), who.Scope)
	if err != nil {
		return accessView{}, err
	}
	created, err := d.UserTokens.UserTokens(c.UserContext(), who.Scope)
	if err != nil {
		return accessView{}, err
	}
	view := accessView{
		Tokens: created, Secret: secretName(who.SignInName()), Apps: apps, Address: d.address(),
	}
	if d.SecretDetails {
		view.Namespace = who.Namespace
	}
	if hasPassword(who) {
		view.SignInName = tenant.SignInName{Tenant: who.TenantName, User: who.UserName}.String()
	}
	return view, nil
}

func (d *Dashboard) renderAccess(c *fiber.Ctx, who *tenant.Session, view accessView) error {
	return d.render(c, fiber.StatusOK, "access", page{Title: msg("Access"), Section: "connect", Who: who, Data: view})
}

// replaceToken creates a new token and shows it in the response, because it cannot
// be shown again.
func (d *Dashboard) replaceToken(c *fiber.Ctx, who *tenant.Session) error {
	form, err := d.form(c)
	if err != nil {
		return err
	}
	if form.Get("confirmed") == "" {
		return fault.New(fault.Invalid, "tick the box to confirm, then regenerate")
	}
	if !d.recent(who) {
		return authenticateAgain(c, "/connect")
	}
	secret, err := tenant.NewToken(d.DatabaseCell, d.Random)
	if err != nil {
		return fmt.Errorf("create token: %w", err)
	}
	// Load everything for the page first: a token that is not shown is lost.
	view, err := d.accessOf(c, who)
	if err != nil {
		return err
	}
	token, err := d.Access.ReplaceToken(c.UserContext(), who.Scope, tenant.HashSecret(secret))
	if err != nil {
		return err
	}
	view.Token, view.New = &token, secret
	return d.renderAccess(c, who, view)
}
