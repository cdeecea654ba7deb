package dashboard

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"github.com/gofiber/fiber/v2"

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
	Draft    memoryDraft // the form
	Buckets  []memory.Bucket
	Versions []memory.Version // newest first; empty if never edited
	Whole    int              // the version shown in full, 0 for none
	Older    string           // path; "" for none
	Problem  string
	Changed  bool // the text was edited while the user wrote the draft
	// Duplicates were merged into it.
	Duplicates []memory.MergedMemory
}

// memoryDraft is the form of a memory. It has what the user saw, so that saving it changes only what they changed.
type memoryDraft struct {
	Text    string
	Version int   // that the user saw
	From    int64 // the bucket that the user saw
	Bucket  int64 // the chosen bucket
}

// draftOf returns the form of a memory that was not changed yet.
func draftOf(m memory.Memory) memoryDraft {
	return memoryDraft{Text: m.Text, Version: m.Version, From: m.BucketID, Bucket: m.BucketID}
}

func (d *Dashboard) showMemory(c *fiber.Ctx, who *tenant.Session) error {
	return d.renderMemory(c, who, nil, nil)
}

// renderMemory renders a memory, with a rejected draft and the problem.
func (d *Dashboard) renderMemory(c *fiber.Ctx, who *tenant.Session, draft *memoryDraft, problem error) error {
	ctx, id := c.UserContext(), c.Params("id")
	m, merged, err := d.Memories.GetMerged(ctx, who.Identity, id)
	if err != nil {
		return err
	}
	if m.MergedInto != "" && problem != nil {
		return problem // a redirect would lose the draft
	}
	if m.MergedInto != "" {
		return c.Redirect(memoryPath(m.MergedInto)+"#merged", fiber.StatusSeeOther)
	}
	buckets, err := d.Memories.ListBuckets(ctx, who.Identity)
	if err != nil {
		return err
	}
	skip := max(c.QueryInt("skip"), 0)
	versions, hasOlder, err := d.Memories.Versions(ctx, who.Identity, id, skip, versionPage)
	if err != nil {
		return err
	}
	view := memoryView{Memory: m, Draft: draftOf(m), Buckets: buckets, Whole: c.QueryInt("version"), Duplicates: merged}
	if m.Version > 1 {
		view.Versions = versions
	}
	if hasOlder {
		view.Older = fmt.Sprintf("/memories/%s?skip=%d#history", url.PathEscape(id), skip+versionPage)
	}
	for i, v := range view.Versions {
		if v.Version != view.Whole {
			view.Versions[i].Text = excerpt(versionText, v.Text)
		}
	}
	status := fiber.StatusOK
	if problem != nil {
		view.reject(*draft, problem)
		status, view.Problem = d.problem(c, problem)
	}
	return d.render(c, status, "memory", page{Name: excerpt(40, splitDate(m.Text).Text), Section: "memories", Who: who, Data: view})
}

// reject shows a draft again. Saved once more, it replaces the current text only if the page has shown it.
func (v *memoryView) reject(draft memoryDraft, problem error) {
	v.Changed = errors.Is(problem, memory.ErrMemoryChanged)
	v.Draft.Text = draft.Text
	if !v.Changed {
		v.Draft.Version = draft.Version
	}
	if draft.Bucket != draft.From && slices.ContainsFunc(v.Buckets, func(b memory.Bucket) bool { return b.ID == draft.Bucket }) {
		v.Draft.Bucket = draft.Bucket
	}
}

func (d *Dashboard) editMemory(c *fiber.Ctx, who *tenant.Session) error {
	form, err := d.form(c)
	if err != nil {
		return err
	}
	before, err := d.Memories.Get(c.UserContext(), who.Identity, c.Params("id"))
	if err != nil {
		return err
	}
	draft, err := readDraft(form)
	if err != nil {
		return d.renderMemory(c, who, &draft, err)
	}
	in, err := d.changes(c, who, before, draft)
	if err != nil {
		return err
	}
	here := memoryPath(before.ID)
	if in.Text == nil && in.Bucket == (memory.BucketRef{}) {
		return c.Redirect(withNotice(here, "unchanged"), fiber.StatusSeeOther)
	}
	_, err = d.Memories.Update(c.UserContext(), who.Identity, in)
	if canRetry(err) {
		return d.renderMemory(c, who, &draft, err)
	}
	if err != nil {
		return err
	}
	return c.Redirect(withNotice(here, "saved"), fiber.StatusSeeOther)
}

// readDraft reads the form of a memory. Without a version, which every page has, the text replaces none.
func readDraft(form url.Values) (memoryDraft, error) {
	draft := memoryDraft{Text: trimmed(form.Get("text"))}
	draft.Version, _ = strconv.Atoi(form.Get("version"))
	var err error
	if draft.From, err = bucketOf(form.Get("from")); err != nil {
		return draft, err
	}
	draft.Bucket, err = bucketOf(form.Get("bucket"))
	return draft, err
}

// changes returns what the user changed in a draft: not what somebody else has changed since the page was shown, or what a
// form does not preserve of a text, such as its spaces at the end.
func (d *Dashboard) changes(c *fiber.Ctx, who *tenant.Session, before memory.Memory, draft memoryDraft) (memory.UpdateInput, error) {
	in := memory.UpdateInput{ID: before.ID}
	if draft.Bucket != 0 && draft.Bucket != draft.From && draft.Bucket != before.BucketID {
		in.Bucket = memory.BucketRef{ID: draft.Bucket}
	}
	if draft.Text == trimmed(before.Text) {
		return in, nil
	}
	if age := before.Version - draft.Version; draft.Version > 0 && age > 0 {
		seen, _, err := d.Memories.Versions(c.UserContext(), who.Identity, before.ID, age, 1)
		if err != nil {
			return in, err
		}
		if len(seen) > 0 && seen[0].Version == draft.Version && draft.Text == trimmed(seen[0].Text) {
			return in, nil
		}
	}
	in.Text, in.Replaces = &draft.Text, &draft.Version
	return in, nil
}
