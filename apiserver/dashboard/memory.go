package dashboard

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// versionPage is the number of versions on a page; their texts are truncated to
	// versionText bytes.
	versionPage = 20
	versionText = 1200
)

// memoryView is a memory with its history.
type memoryView struct {
	memory.Memory
	Draft    string // the text in the form
	Buckets  []memory.Bucket
	Versions []memory.Version // newest first; empty if never edited
	Whole    int              // the version shown in full, 0 for none
	Older    string           // path; "" for none
	Problem  string
	// Duplicates were merged into it.
	Duplicates []memory.MergedMemory
}

func (d *Dashboard) showMemory(c *fiber.Ctx, who *tenant.Session) error {
	return d.renderMemory(c, who, nil, nil)
}

// renderMemory renders a memory, with a rejected draft and the problem.
func (d *Dashboard) renderMemory(c *fiber.Ctx, who *tenant.Session, draft *string, problem error) error {
	ctx, id := c.UserContext(), c.Params("id")
	m, merged, err := d.Memories.GetMerged(ctx, who.Identity, id)
	if err != nil {
		return err
	}
	if m.MergedInto != "" {
		return c.Redirect(memoryPath(m.MergedInto)+"#merged", fiber.StatusSeeOther)
	}
	buckets, err := d.Memories.ListBuckets(ctx, who.Identity)
	if err != nil {
		return err
	}
	skip := max(c.QueryInt("skip"), 0)
	versions, more, err := d.Memories.Versions(ctx, who.Identity, id, skip, versionPage)
	if err != nil {
		return err
	}
	view := memoryView{Memory: m, Draft: m.Text, Buckets: buckets, Whole: c.QueryInt("version"), Duplicates: merged}
	if m.Version > 1 {
		view.Versions = versions
	}
	if more {
		view.Older = fmt.Sprintf("/memories/%s?skip=%d#history", url.PathEscape(id), skip+versionPage)
	}
	for i, v := range view.Versions {
		if v.Version != view.Whole {
			view.Versions[i].Text = excerpt(versionText, v.Text)
		}
	}
	status := fiber.StatusOK
	if problem != nil {
		view.Draft = *draft
		status, view.Problem = d.problem(c, problem)
	}
	return d.render(c, status, "memory", page{Name: excerpt(40, splitDate(m.Text).Text), Section: "memories", Who: who, Data: view})
}

func (d *Dashboard) editMemory(c *fiber.Ctx, who *tenant.Session) error {
	form, err := d.form(c)
	if err != nil {
		return err
	}
	id := c.Params("id")
	before, err := d.Memories.Get(c.UserContext(), who.Identity, id)
	if err != nil {
		return err
	}
	bucket, err := bucketOf(form.Get("bucket"))
	if err != nil {
		return err
	}
	text := strings.TrimSpace(lines(form.Get("text")))
	in := memory.UpdateInput{ID: id}
	if text != before.Text {
		in.Text = &text
	}
	if bucket != 0 && bucket != before.BucketID {
		in.Bucket = memory.BucketRef{ID: bucket}
	}
	here := "/memories/" + url.PathEscape(id)
	if in.Text == nil && in.Bucket == (memory.BucketRef{}) {
		return c.Redirect(withNotice(here, "unchanged"), fiber.StatusSeeOther)
	}
	_, err = d.Memories.Update(c.UserContext(), who.Identity, in)
	if fault.Is(err, fault.Invalid) || fault.Is(err, fault.Forbidden) {
		return d.renderMemory(c, who, &text, err)
	}
	if err != nil {
		return err
	}
	return c.Redirect(withNotice(here, "saved"), fiber.StatusSeeOther)
}
