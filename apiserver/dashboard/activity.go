package dashboard

import (
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// activityPage is the number of audit records of a page.
	activityPage = 200
	// combineWithin is the time within which equal changes are one entry.
	combineWithin = 30 * time.Minute
)

// activityView is Account → Activity: what happened to the user's data, newest first.
type activityView struct {
	Entries []activity
	Older   int64 // the sequence number before which the next page begins; 0 on the last page
	First   bool  // this is the first page
	Apps    []connectedApp
}

// activity is a change, or several equal ones in a row.
type activity struct {
	At   time.Time // of the newest
	Who  message
	App  *connectedApp // the connected app that made it, instead of Who; nil for others
	What message

	record audit.Record
	count  int
}

func (d *Dashboard) showActivity(c *fiber.Ctx, who *tenant.Session) error {
	ctx := c.UserContext()
	before, err := sequence(c.Query("before"))
	if err != nil {
		return err
	}
	apps, err := d.connectedApps(ctx, who.Scope)
	if err != nil {
		return err
	}
	if err := audit.SealForReader(ctx, d.Audit, who.Tenant); err != nil {
		return err
	}
	records, err := d.Audit.RecentRecords(ctx, who.Scope, before, activityPage)
	if err != nil {
		return err
	}
	tokens, err := d.UserTokens.UserTokenNames(ctx, who.Scope)
	if err != nil {
		return err
	}
	view := activityView{Entries: activities(records, apps, tokens), First: before == 0, Apps: apps}
	if len(records) == activityPage {
		view.Older = records[len(records)-1].Sequence
	}
	return d.render(c, fiber.StatusOK, "activity", page{Title: msg("Activity"), Section: "account", Tab: "activity", Who: who, Data: view})
}

// sequence parses the sequence number in a link; "" is 0.
func sequence(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, fault.New(fault.Invalid, "before must be a positive number")
	}
	return n, nil
}

// activities describes records, and combines equal ones in a row. tokens are the names of the
// user's tokens by their fingerprints.
func activities(records []audit.Record, apps []connectedApp, tokens map[string]string) []activity {
	var out []activity
	for _, r := range records {
		if last := len(out) - 1; last >= 0 && sameAction(out[last].record, r) {
			out[last].count += len(r.Objects)
			out[last].record.At = r.At
			continue
		}
		a := activity{At: r.At, record: r, count: len(r.Objects)}
		a.Who, a.App = actorOf(r, apps, tokens)
		out = append(out, a)
	}
	for i := range out {
		out[i].What = phrase(out[i].record.Verb, out[i].count)
	}
	return out
}

// sameAction reports whether two records describe the same kind of change by the same
// credential at about the same time. earlier is the older one.
func sameAction(later, earlier audit.Record) bool {
	return later.Verb == earlier.Verb && later.Actor == earlier.Actor && later.Via == earlier.Via && later.App == earlier.App &&
		later.Fingerprint == earlier.Fingerprint && later.At.Sub(earlier.At) < combineWithin
}

// actorOf returns who made a change, in the words of the user, or the connected app.
func actorOf(r audit.Record, apps []connectedApp, tokens map[string]string) (message, *connectedApp) {
	switch tenant.ActorKind(r.Actor) {
	case tenant.ActorOperator, tenant.ActorAdministrator:
		return msg("Your administrator"), nil
	case tenant.ActorSystem:
		return msg("Mnemo"), nil
	}
	switch r.Via {
	case tenant.ViaToken:
		if name, ok := tokens[r.Fingerprint]; ok {
			return msg("Token %s", name), nil
		}
		return msg("Your token"), nil // issued by the administrator, or ended long ago
	case tenant.ViaApp:
		for i := range apps {
			if apps[i].Client == r.App {
				return message{}, &apps[i]
			}
		}
		return msg("A disconnected app"), nil
	}
	return msg("You"), nil
}
