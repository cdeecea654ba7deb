package dashboard

import (
	"cmp"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// usageView is the usage of the tenant's quotas.
type usageView struct {
	Tenant   string
	Bars     []bar
	Requests int64
	Blocked  int // over-quota conversations of the user
}

// bar is the usage of a quota.
type bar struct {
	ID         string
	Name       message
	Used, Hard int64
	Bytes      bool // of Used and Hard
	Value, Max int64
	Full       bool
	Own        message // the user's share
}

func newBar(id string, name message, used, hard int64) bar {
	return bar{ID: id, Name: name, Used: used, Hard: hard, Value: min(used, max(hard, 1)), Max: max(hard, 1), Full: used >= hard}
}

// bars returns the usage of the tenant's quotas that are counted: memories, conversations, storage and users.
func bars(held tenant.Holdings, q tenant.Quota) []bar {
	names := map[string]message{
		"memories": msg("Memories"), "conversations": msg("Conversations"), "storage": msg("Storage"), "users": msg("Users"),
	}
	var out []bar
	for _, r := range tenant.Resources {
		if r.Used == nil {
			continue
		}
		b := newBar(r.Name, names[r.Name], r.Used(&held.Tenant), *r.Limit(&q))
		b.Bytes = r.Bytes
		out = append(out, b)
	}
	return out
}

// organization returns the name of the user's tenant.
func organization(who *tenant.Session) string { return cmp.Or(who.DisplayName, who.TenantName) }

// ownShare describes the user's share of a quota and its limit.
func ownShare(used, hard int64) message {
	if hard >= tenant.NoLimit {
		return msg("Yours: %d", used)
	}
	return msg("Yours: %d of %d", used, hard)
}

func (d *Dashboard) showUsage(c *fiber.Ctx, who *tenant.Session) error {
	ctx := c.UserContext()
	held, err := d.Holdings(ctx, who.Scope)
	if err != nil {
		return err
	}
	_, blocked, err := d.Chats.List(ctx, who.Identity, chat.ConversationFilter{Status: chat.Blocked, Limit: 1})
	if err != nil {
		return err
	}
	view := usageView{Tenant: organization(who), Requests: who.Quota.RequestsPerMinute, Blocked: blocked, Bars: bars(held, who.Quota)}
	view.Bars[0].Own = ownShare(held.Memories, who.Quota.UserMemories)
	view.Bars[1].Own = ownShare(held.Conversations, who.Quota.UserConversations)
	return d.render(c, fiber.StatusOK, "usage", page{Title: msg("Usage"), Section: "account", Tab: "usage", Who: who, Data: view})
}
