package dashboard

import (
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// privacyView is Account → Privacy.
type privacyView struct {
	Memories, Conversations int64
	Apps                    int
	Confirmation            string
	Problem                 string
	Receipt                 *receipt // of an erasure that has just ended
}

// receipt is the proof of an erasure: what was deleted, and what a search of the
// stores found afterwards.
type receipt struct {
	At                      time.Time
	Memories, Conversations int
	Done                    bool  // nothing is left
	Left                    int64 // memories and active conversations found afterwards
}

func (d *Dashboard) showPrivacy(c *fiber.Ctx, who *tenant.Session) error {
	return d.renderPrivacy(c, who, nil, nil)
}

func (d *Dashboard) renderPrivacy(c *fiber.Ctx, who *tenant.Session, done *receipt, problem error) error {
	ctx := c.UserContext()
	held, err := d.Holdings(ctx, who.Scope)
	if err != nil {
		return err
	}
	apps, err := d.connectedApps(ctx, who.Scope)
	if err != nil {
		return err
	}
	view := privacyView{Memories: held.Memories, Conversations: held.Conversations, Apps: len(apps), Confirmation: account.Confirmation, Receipt: done}
	if done != nil {
		done.Left = held.Memories + held.Conversations
	}
	status := fiber.StatusOK
	if problem != nil {
		status, _, _ = d.Server.HTTPError(ctx, problem)
		view.Problem = d.languages.of(c).text("Type “%s” to confirm. Nothing was deleted.", account.Confirmation)
	}
	return d.render(c, status, "privacy", page{Title: msg("Privacy"), Section: "account", Tab: "privacy", Who: who, Data: view})
}

func (d *Dashboard) export(c *fiber.Ctx, who *tenant.Session) error {
	return d.Files.Export(c, who.Identity)
}

// erase deletes the user's data and shows the receipt in the response, because its
// numbers are not stored.
func (d *Dashboard) erase(c *fiber.Ctx, who *tenant.Session) error {
	form, err := d.form(c)
	if err != nil {
		return err
	}
	given := form.Get("confirm")
	if given == account.Confirmation && !d.recent(who) {
		return authenticateAgain(c, "/privacy")
	}
	purged, err := d.Accounts.Delete(c.UserContext(), who.Identity, &given)
	if fault.Is(err, fault.Invalid) {
		return d.renderPrivacy(c, who, nil, err)
	}
	if err != nil {
		return err
	}
	return d.renderPrivacy(c, who, &receipt{At: d.Now(), Memories: purged.Memories, Conversations: purged.Conversations, Done: purged.Done}, nil)
}
