package dashboard

import (
	"context"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// memberPage is the number of members on a page.
const memberPage = 100

// Administration is what the administrators of a tenant see and change. It contains no
// data of users.
type Administration interface {
	Members(ctx context.Context, scope tenant.Scope, after string, limit int) ([]tenant.Member, error)
	Keys(ctx context.Context, scope tenant.Scope) ([]tenant.Key, error)
	ListExternalUsers(ctx context.Context, id tenant.ID) ([]tenant.ExternalUserInfo, []tenant.RemovedUser, error)
	RemoveExternalUser(ctx context.Context, id tenant.ID, email string) (int, error)
	RestoreExternalUser(ctx context.Context, id tenant.ID, email string) error
	RecordCommand(ctx context.Context, id tenant.ID, verb audit.Verb) error
}

// adminView is Account → Organization, for administrators.
type adminView struct {
	Tenant   string
	Resource string // namespace/name of the Tenant
	Address  string // at which the users of the tenant sign in
	Members  []tenant.Member
	Own      string // the name of the administrator
	Older    string // the name after which the next page begins; "" on the last one
	First    bool   // this is the first page
	Removed  []tenant.RemovedUser
	External bool // users of an identity provider exist or were removed
	Keys     []tenant.Key
	Bars     []bar
	Quota    tenant.Quota
}

// administrator wraps the handler of a page for administrators of their tenant.
func (d *Dashboard) administrator(h func(c *fiber.Ctx, who *tenant.Session) error) fiber.Handler {
	return d.signedIn(func(c *fiber.Ctx, who *tenant.Session) error {
		if !who.Administrator {
			return fault.New(fault.Forbidden, "only administrators of your organization can do this")
		}
		return h(c, who)
	})
}

func (d *Dashboard) showAdmin(c *fiber.Ctx, who *tenant.Session) error {
	ctx, after := c.UserContext(), c.Query("after")
	if strings.ContainsRune(after, 0) {
		return fault.New(fault.Invalid, "after must be the name of a user")
	}
	view := adminView{Tenant: organization(who), Resource: who.Namespace + "/" + who.TenantName, Own: who.UserName,
		Address: origin(c) + "/t/" + who.Namespace + "/" + who.TenantName, First: after == "", Quota: who.Quota}
	var err error
	if view.Members, err = d.Administration.Members(ctx, who.Scope, after, memberPage+1); err != nil {
		return err
	}
	if len(view.Members) > memberPage {
		view.Members = view.Members[:memberPage]
		view.Older = view.Members[memberPage-1].Name
	}
	external, removed, err := d.Administration.ListExternalUsers(ctx, who.Tenant)
	if err != nil {
		return err
	}
	view.Removed, view.External = removed, len(external)+len(removed) > 0
	if view.Keys, err = d.Administration.Keys(ctx, who.Scope); err != nil {
		return err
	}
	held, err := d.Holdings(ctx, who.Scope)
	if err != nil {
		return err
	}
	view.Bars = bars(held, who.Quota)
	return d.render(c, fiber.StatusOK, "admin", page{Title: msg("Organization"), Section: "account", Tab: "admin", Who: who, Data: view})
}

// removeMember ends the access of a user of the identity provider. Other users are
// managed in the Tenant resource.
func (d *Dashboard) removeMember(c *fiber.Ctx, who *tenant.Session) error {
	form, err := d.form(c)
	if err != nil {
		return err
	}
	email := form.Get("email")
	if strings.EqualFold(email, who.Email) {
		return fault.New(fault.Invalid, "you cannot remove yourself; ask another administrator")
	}
	external, _, err := d.Administration.ListExternalUsers(c.UserContext(), who.Tenant)
	if err != nil {
		return err
	}
	if !hasActive(external, email) {
		return fault.New(fault.NotFound, "your organization has no such user")
	}
	if !d.recent(who) {
		return authenticateAgain(c, "/admin")
	}
	if _, err := d.Administration.RemoveExternalUser(c.UserContext(), who.Tenant, email); err != nil {
		return err
	}
	return c.Redirect(withNotice("/admin", "member-removed"), fiber.StatusSeeOther)
}

func hasActive(users []tenant.ExternalUserInfo, email string) bool {
	for _, u := range users {
		if u.Active && strings.EqualFold(u.Email, email) {
			return true
		}
	}
	return false
}

// restoreMember permits a removed user to sign in again.
func (d *Dashboard) restoreMember(c *fiber.Ctx, who *tenant.Session) error {
	form, err := d.form(c)
	if err != nil {
		return err
	}
	if strings.ContainsRune(form.Get("email"), 0) {
		return fault.New(fault.Invalid, "email must not contain the character U+0000")
	}
	if err := d.Administration.RestoreExternalUser(c.UserContext(), who.Tenant, form.Get("email")); err != nil {
		return err
	}
	return c.Redirect(withNotice("/admin", "member-restored"), fiber.StatusSeeOther)
}

// exportAudit sends the audit log of the tenant: ids and fingerprints, no texts.
func (d *Dashboard) exportAudit(c *fiber.Ctx, who *tenant.Session) error {
	if err := d.Administration.RecordCommand(c.UserContext(), who.Tenant, audit.AuditExport); err != nil {
		return err
	}
	return d.Files.ExportAudit(c, who.Identity)
}
