package dashboard

import (
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// tokenForm is the form of a new token.
type tokenForm struct {
	Name    string
	Scopes  string // separated by spaces
	Days    string // until it expires; "" for never
	Problem string
}

// choice is an option of a form.
type choice struct {
	Value string
	Label message
}

// tokenScopes are the choices of the form.
var tokenScopes = []choice{
	{"read write", msg("Read and write")}, {"read", msg("Read only")}, {"read write admin", msg("Read, write and manage tokens")},
}

// tokenLives are the choices of the form, in days.
var tokenLives = []choice{
	{"30", msg("After 30 days")}, {"90", msg("After 90 days")}, {"365", msg("After a year")}, {"", msg("Never")},
}

// newTokenForm returns the form with its defaults.
func newTokenForm() tokenForm { return tokenForm{Scopes: tokenScopes[0].Value, Days: "365"} }

// createToken creates a token and shows it in the response, in the settings of each app,
// because it cannot be shown again.
func (d *Dashboard) createToken(c *fiber.Ctx, who *tenant.Session) error {
	posted, err := d.form(c)
	if err != nil {
		return err
	}
	if !d.recent(who) {
		return authenticateAgain(c, "/connect/apps")
	}
	form := tokenForm{Name: posted.Get("name"), Scopes: posted.Get("scopes"), Days: posted.Get("days")}
	in := tenant.TokenInput{Name: form.Name, Scopes: strings.Fields(form.Scopes)}
	if form.Days != "" {
		days, err := strconv.ParseUint(form.Days, 10, 16)
		if err != nil {
			return fault.New(fault.Invalid, "expiry must be a number of days")
		}
		in.ExpiresAt = d.Now().Add(time.Duration(days) * 24 * time.Hour)
	}
	created, secret, err := tenant.UserTokens{Store: d.UserTokens, Cell: d.DatabaseCell, Random: d.Random, Now: d.Now}.Create(c.UserContext(), who.Identity, in)
	if err != nil {
		return d.rejectToken(c, who, form, err)
	}
	return d.renderApps(c, who, fiber.StatusOK, appsView{New: secret, Name: created.Name, Form: newTokenForm()})
}

// rejectToken renders the form with a problem that the user can solve; other errors are
// returned.
func (d *Dashboard) rejectToken(c *fiber.Ctx, who *tenant.Session, form tokenForm, problem error) error {
	if !fault.Is(problem, fault.Invalid) && !fault.Is(problem, fault.Conflict) && !fault.Is(problem, fault.Forbidden) {
		return problem
	}
	var status int
	status, form.Problem = d.problem(c, problem)
	return d.renderApps(c, who, status, appsView{Form: form})
}

// revokeToken revokes a token that the user created.
func (d *Dashboard) revokeToken(c *fiber.Ctx, who *tenant.Session) error {
	form, err := d.form(c)
	if err != nil {
		return err
	}
	if err := d.UserTokens.RevokeUserToken(c.UserContext(), who.Scope, form.Get("id")); err != nil {
		return err
	}
	return c.Redirect(withNotice("/connect", "token-revoked"), fiber.StatusSeeOther)
}

// scopesLabel describes the access of a token.
func (l *locale) scopesLabel(a tenant.Access) string {
	names := a.Names()
	joined := strings.Join(names, " ")
	for _, s := range tokenScopes {
		if s.Value == joined {
			return l.say(s.Label)
		}
	}
	for i := range names {
		names[i] = l.term(names[i])
	}
	return strings.Join(names, ", ")
}
