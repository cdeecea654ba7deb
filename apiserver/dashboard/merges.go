package dashboard

import (
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// similarView offers to merge memories that say nearly the same as a new one.
type similarView struct {
	New     result
	Similar []result
}

// similarTo returns the query parameter that offers to merge, "" if there is nothing to merge.
func similarTo(created memory.Created) string {
	if len(created.Similar) == 0 {
		return ""
	}
	ids := []string{created.ID}
	for _, m := range created.Similar {
		ids = append(ids, m.ID)
	}
	return "&similar=" + url.QueryEscape(strings.Join(ids, ","))
}

// similarOf returns the offer of the page, nil for none: the new memory and those that are similar, as far as they still
// exist.
func (d *Dashboard) similarOf(c *fiber.Ctx, who *tenant.Session) (*similarView, error) {
	ids := strings.Split(c.Query("similar"), ",")
	if len(ids) < 2 || len(ids) > memory.MaxMerged {
		return nil, nil
	}
	found, err := d.Memories.Find(c.UserContext(), who.Identity, ids)
	if err != nil || len(found) < 2 || found[0].ID != ids[0] {
		return nil, err
	}
	view := &similarView{New: memoryResult("", found[0])}
	for _, m := range found[1:] {
		view.Similar = append(view.Similar, memoryResult("", m))
	}
	return view, nil
}

// mergeMemories merges the chosen memories into one, and returns to the list, which offers to undo it.
func (d *Dashboard) mergeMemories(c *fiber.Ctx, who *tenant.Session) error {
	form, err := d.form(c)
	if err != nil {
		return err
	}
	ids, back := chosen(form), localPath(form.Get("back"), "/memories")
	if len(ids) == 0 {
		return c.Redirect(withNotice(back, "unchanged"), fiber.StatusSeeOther)
	}
	kept := c.Params("id")
	if ids, err = d.Memories.Merge(c.UserContext(), who.Identity, memory.MergeInput{Kept: kept, IDs: ids}); err != nil {
		return err
	}
	undo := strings.Join(append([]string{kept}, ids...), ",")
	return c.Redirect(withNotice(back, "merged")+"&undo="+url.QueryEscape(undo), fiber.StatusSeeOther)
}

// unmergeMemories restores the chosen ones, or all, of the memories that were merged into one.
func (d *Dashboard) unmergeMemories(c *fiber.Ctx, who *tenant.Session) error {
	form, err := d.form(c)
	if err != nil {
		return err
	}
	kept := c.Params("id")
	if _, err := d.Memories.Unmerge(c.UserContext(), who.Identity, memory.UnmergeInput{Kept: kept, IDs: chosen(form)}); err != nil {
		return err
	}
	return c.Redirect(withNotice(localPath(form.Get("back"), memoryPath(kept)), "unmerged"), fiber.StatusSeeOther)
}
