package dashboard

import (
	"cmp"
	"fmt"

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
	ID, Name, Used, Hard string
	Value, Max           int64
	Full                 bool
	Own                  string // the user's share
}

func newBar(id, name string, used, hard int64, write func(int64) string) bar {
	return bar{ID: id, Name: name, Used: write(used), Hard: write(hard), Value: min(used, max(hard, 1)), Max: max(hard, 1), Full: used >= hard}
}

// bars returns the usage of the tenant's quotas: memories, conversations, storage and users.
func bars(held tenant.Holdings, q tenant.Quota) []bar {
	count := number[int64]
	return []bar{
		newBar("memories", "Memories", held.Tenant.Memories, q.Memories, count),
		newBar("conversations", "Conversations", held.Tenant.Conversations, q.Conversations, count),
		newBar("storage", "Storage", held.Tenant.Storage, q.Storage, byteSize),
		newBar("users", "Users", held.Tenant.Users, q.Users, count),
	}
}

// organization returns the name of the user's tenant.
func organization(who *tenant.Session) string { return cmp.Or(who.DisplayName, who.TenantName) }

// ownShare formats the user's share of a quota and its limit.
func ownShare(used, hard int64) string {
	if hard >= tenant.NoLimit {
		return "Yours: " + number(used)
	}
	return fmt.Sprintf("Yours: %s of %s", number(used), number(hard))
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
	return d.render(c, fiber.StatusOK, "usage", page{Title: "Usage", Section: "account", Tab: "usage", Who: who, Data: view})
}
