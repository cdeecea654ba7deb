package dashboard

import (
	"context"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// undoHeader is the response header with the id of a deletion, for app.js.
const undoHeader = "X-Undo"

// undo is the offer to undo the last deletion or merge.
type undo struct {
	Action string // path of the form
	Name   string // of the fields
	Values []string
	Back   string // path of the page
}

// deleter deletes objects and returns their number and the id of the deletion.
type deleter func(ctx context.Context, who tenant.Identity, ids []string) (int, string, error)

func (d *Dashboard) deleteMemories(c *fiber.Ctx, who *tenant.Session) error {
	return d.deleteChosen(c, who, "/memories", d.Memories.DeleteUndoable)
}

func (d *Dashboard) deleteChats(c *fiber.Ctx, who *tenant.Session) error {
	return d.deleteChosen(c, who, "/chats", d.Chats.DeleteUndoable)
}

// deleteChosen deletes the chosen objects and returns to the list, which offers to undo
// it.
func (d *Dashboard) deleteChosen(c *fiber.Ctx, who *tenant.Session, list string, remove deleter) error {
	form, err := d.form(c)
	if err != nil {
		return err
	}
	ids, back := chosen(form), localPath(form.Get("back"), list)
	if len(ids) == 0 {
		return c.Redirect(withNotice(back, "unchanged"), fiber.StatusSeeOther)
	}
	n, deletion, err := remove(c.UserContext(), who.Identity, ids)
	if err != nil {
		return err
	}
	if n == 0 {
		deletion = ""
	}
	if isScript(c) {
		c.Set(undoHeader, deletion)
		return c.SendStatus(fiber.StatusNoContent)
	}
	back = withNotice(back, "deleted")
	if deletion != "" {
		back += "&undo=" + url.QueryEscape(deletion)
	}
	return c.Redirect(back, fiber.StatusSeeOther)
}

func (d *Dashboard) undeleteMemories(c *fiber.Ctx, who *tenant.Session) error {
	return d.undelete(c, who, "/memories", d.Memories.Undelete)
}

func (d *Dashboard) undeleteChats(c *fiber.Ctx, who *tenant.Session) error {
	return d.undelete(c, who, "/chats", d.Chats.Undelete)
}

// undelete undoes a deletion and returns to the list.
func (d *Dashboard) undelete(c *fiber.Ctx, who *tenant.Session, list string, restore func(context.Context, tenant.Identity, string) (int, error)) error {
	form, err := d.form(c)
	if err != nil {
		return err
	}
	if _, err := restore(c.UserContext(), who.Identity, form.Get("deletion")); err != nil {
		return err
	}
	if isScript(c) {
		return c.SendStatus(fiber.StatusNoContent)
	}
	return c.Redirect(withNotice(localPath(form.Get("back"), list), "undeleted"), fiber.StatusSeeOther)
}

// undoOf returns the offer to undo the deletion or merge that the page follows, nil for none.
func undoOf(c *fiber.Ctx) *undo {
	value, done := c.Query("undo"), c.Query("done")
	action, known := map[string]string{"/memories": "/memories/undelete", "/chats": "/chats/undelete"}[c.Path()]
	ids := strings.Split(value, ",")
	switch {
	case value == "" || !known:
		return nil
	case done == "deleted":
		return &undo{Action: action, Name: "deletion", Values: []string{value}, Back: c.Path()}
	case done == "merged" && len(ids) > 1: // the kept memory and the merged ones
		return &undo{Action: memoryPath(ids[0]) + "/unmerge", Name: "id", Values: ids[1:], Back: c.Path()}
	}
	return nil
}
