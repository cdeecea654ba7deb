package dashboard

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// platformPage is the number of tenants on a page.
	platformPage = 50
	// maxPlatformPages is the number of pages that can be requested.
	maxPlatformPages = 1 << 20
	// nearQuota is the percentage of a quota at which the page suggests a higher one.
	nearQuota = 80
)

// Platform is what platform administrators see: names and counts of all tenants, and no data
// of their users.
type Platform interface {
	// SignInPlatform begins a session and resets the failed attempts of the address.
	SignInPlatform(ctx context.Context, s tenant.PlatformSignIn) error
	// PlatformSession returns the administrator of a session; Unauthorized if there is none.
	PlatformSession(ctx context.Context, h tenant.Hash) (tenant.PlatformAdministrator, error)
	// EndPlatformSession ends a session. It does nothing if there is none.
	EndPlatformSession(ctx context.Context, h tenant.Hash) error
	// Overview returns the state of all tenants and a page of them.
	Overview(ctx context.Context, f tenant.OverviewFilter) (tenant.Overview, error)
}

// platformView is the platform overview.
type platformView struct {
	tenant.Overview
	platformFilter
	Groups       []platformGroup
	Rows         []platformRow
	Lag          message
	Newer, Older string // paths; "" for none
}

// platformGroup is a tab with a group of tenants.
type platformGroup struct {
	Name    message
	Path    string
	Count   int64
	Current bool
}

// platformRow is a tenant with what may need attention.
type platformRow struct {
	tenant.OverviewTenant
	Bars     []bar
	Problems []message
	Commands []string
}

// platformFilter selects the tenants; its fields are query parameters.
type platformFilter struct {
	Group tenant.OverviewGroup
	Query string
	Order tenant.OverviewOrder
	Page  int
}

func (f platformFilter) path() string {
	q := url.Values{}
	for name, value := range map[string]string{"show": string(f.Group), "q": f.Query, "sort": string(f.Order)} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.Page > 1 {
		q.Set("page", strconv.Itoa(f.Page))
	}
	if len(q) == 0 {
		return "/platform"
	}
	return "/platform?" + q.Encode()
}

// at returns the filter with another page.
func (f platformFilter) at(page int) platformFilter {
	f.Page = page
	return f
}

// Narrow reports whether the filter excludes tenants.
func (f platformFilter) Narrow() bool { return f.Group != "" || f.Query != "" }

func platformFilterOf(c *fiber.Ctx) (platformFilter, error) {
	f := platformFilter{
		Group: tenant.OverviewGroup(c.Query("show")), Query: strings.TrimSpace(c.Query("q")), Order: tenant.OverviewOrder(c.Query("sort")),
		Page: min(max(c.QueryInt("page", 1), 1), maxPlatformPages),
	}
	switch f.Group {
	case "", tenant.OnlyNearQuota, tenant.OnlyUnhealthy, tenant.OnlyRetained:
	default:
		return f, fault.New(fault.Invalid, "show must be near-quota, unhealthy or retained")
	}
	switch f.Order {
	case "", tenant.ByName, tenant.ByStorage, tenant.ByIndexLag:
	default:
		return f, fault.New(fault.Invalid, "sort must be name, storage or index-lag")
	}
	if strings.ContainsRune(f.Query, 0) {
		return f, fault.New(fault.Invalid, "q must not contain the character U+0000")
	}
	return f, nil
}

func (d *Dashboard) showPlatform(c *fiber.Ctx) error {
	who, err := d.platformSession(c)
	if err != nil {
		return err
	}
	if who == nil {
		return c.Redirect("/platform/sign-in", fiber.StatusSeeOther)
	}
	f, err := platformFilterOf(c)
	if err != nil {
		return err
	}
	o, err := d.Platform.Overview(c.UserContext(), tenant.OverviewFilter{
		Group: f.Group, Name: f.Query, Order: f.Order, Limit: platformPage, Offset: (f.Page - 1) * platformPage,
	})
	if err != nil {
		return err
	}
	view := platformView{Overview: o, platformFilter: f, Groups: groupsOf(o, f), Lag: lagOf(o.IndexLag)}
	for _, t := range o.Tenants {
		view.Rows = append(view.Rows, rowOf(t))
	}
	if f.Page > 1 {
		view.Newer = f.at(f.Page - 1).path()
	}
	if o.HasMore {
		view.Older = f.at(f.Page + 1).path()
	}
	return d.render(c, fiber.StatusOK, "platform", page{Title: msg("Platform overview"), Platform: who, Data: view})
}

// groupsOf returns the tabs. They keep the order, but not the search.
func groupsOf(o tenant.Overview, f platformFilter) []platformGroup {
	tab := func(name message, g tenant.OverviewGroup, count int64) platformGroup {
		return platformGroup{name, platformFilter{Group: g, Order: f.Order}.path(), count, f.Group == g}
	}
	return []platformGroup{
		tab(msg("All tenants"), "", o.All), tab(msg("Near quota"), tenant.OnlyNearQuota, o.NearQuota),
		tab(msg("Unhealthy"), tenant.OnlyUnhealthy, o.Unhealthy), tab(msg("Retained"), tenant.OnlyRetained, o.Retained),
	}
}

func rowOf(t tenant.OverviewTenant) platformRow {
	row := platformRow{OverviewTenant: t, Bars: bars(tenant.Holdings{Tenant: t.Usage}, t.Hard), Problems: problemsOf(t), Commands: commandsOf(t)}
	for i := range row.Bars {
		row.Bars[i].ID += "-" + string(t.ID)
	}
	return row
}

// problemsOf returns the reasons for which a tenant needs attention.
func problemsOf(t tenant.OverviewTenant) (out []message) {
	if t.Usage.Blocked > 0 {
		out = append(out, msg("%d conversations are over the quota and not searchable.", t.Usage.Blocked))
	}
	if t.Lagging {
		out = append(out, msg("The oldest change has waited %d min for the index.", int(t.IndexLag/time.Minute)))
	}
	if t.Unplaced {
		out = append(out, msg("The operator has not processed the tenant yet."))
	}
	if t.DriftedSweeps > 0 {
		out = append(out, msg("Consecutive index sweeps that found drift: %d.", t.DriftedSweeps))
	}
	if t.FailingWebhooks > 0 {
		out = append(out, msg("%d webhooks aren’t delivering.", t.FailingWebhooks))
	}
	return out
}

// commandsOf returns the commands that examine and change a tenant.
func commandsOf(t tenant.OverviewTenant) []string {
	if t.Retained {
		return []string{"mnemo tenants list --retained", "mnemo tenants purge " + string(t.ID)}
	}
	out := []string{
		fmt.Sprintf("kubectl -n %s describe tenant %s", t.Namespace, t.Name),
		fmt.Sprintf("kubectl -n %s get tenant %s -o yaml", t.Namespace, t.Name),
	}
	if patch := quotaPatch(t); patch != "" {
		out = append(out, fmt.Sprintf("kubectl -n %s patch tenant %s --type=merge -p '%s'", t.Namespace, t.Name, patch))
	}
	if t.Lagging || t.DriftedSweeps > 0 {
		out = append(out, "mnemo index repair --dry-run --tenant="+string(t.ID))
	}
	if t.FailingWebhooks > 0 {
		out = append(out, fmt.Sprintf("mnemo webhooks list --tenant=%s/%s", t.Namespace, t.Name))
	}
	return out
}

// quotaPatch returns the patch of the Tenant that doubles the quotas of which it has used
// most; "" if there are none.
func quotaPatch(t tenant.OverviewTenant) string {
	var raised []string
	for _, b := range bars(tenant.Holdings{Tenant: t.Usage}, t.Hard) {
		if b.Used >= b.Hard*nearQuota/100 {
			raised = append(raised, fmt.Sprintf("%q:%d", b.ID, 2*max(b.Hard, 1)))
		}
	}
	if len(raised) == 0 {
		return ""
	}
	return `{"spec":{"quota":{` + strings.Join(raised, ",") + `}}}`
}

// lagOf describes how long the oldest change has waited for the index.
func lagOf(d time.Duration) message {
	switch {
	case d < time.Minute:
		return msg("%d s", int(d/time.Second))
	case d < 2*time.Hour:
		return msg("%d min", int(d/time.Minute))
	}
	return msg("%d h", int(d/time.Hour))
}
