package dashboard

import (
	"errors"
	"net/url"
	"slices"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// bucketView is the form of a new or existing bucket.
type bucketView struct {
	memory.Bucket
	New     bool
	Problem string
	// Seen has the stored values that the page was shown with, so that saving it changes only what the user changed.
	Seen    memory.BucketInput
	Changed bool // one of the values was edited while the user changed it
}

func (d *Dashboard) addBucket(c *fiber.Ctx, who *tenant.Session) error {
	form, err := d.form(c)
	if err != nil {
		return err
	}
	in := memory.BucketInput{Name: form.Get("name"), Description: lines(form.Get("description"))}
	id, err := d.Memories.CreateBucket(c.UserContext(), who.Identity, in)
	if err != nil {
		return d.renderBucket(c, who, bucketView{New: true, Bucket: memory.Bucket{Name: in.Name, Description: in.Description}}, err)
	}
	return c.Redirect(withNotice(memoryFilter{bucket: id}.path(0), "bucket-added"), fiber.StatusSeeOther)
}

// renderBucket renders the form with a validation error; other errors are returned.
func (d *Dashboard) renderBucket(c *fiber.Ctx, who *tenant.Session, view bucketView, problem error) error {
	status := fiber.StatusOK
	if problem != nil {
		if !canRetry(problem) || fault.Is(problem, fault.NotFound) {
			return problem
		}
		status, view.Problem = d.problem(c, problem)
	}
	p := page{Title: msg("New bucket"), Section: "memories", Who: who, Data: view}
	if !view.New {
		p.Name = view.Name
	}
	return d.render(c, status, "bucket", p)
}

func (d *Dashboard) showBucket(c *fiber.Ctx, who *tenant.Session) error {
	if c.Params("id") == "new" {
		return d.renderBucket(c, who, bucketView{New: true}, nil)
	}
	b, err := d.bucket(c, who)
	if err != nil {
		return err
	}
	return d.renderBucket(c, who, bucketView{Bucket: b, Seen: valuesOf(b)}, nil)
}

// bucket returns the bucket of the path.
func (d *Dashboard) bucket(c *fiber.Ctx, who *tenant.Session) (memory.Bucket, error) {
	id, err := bucketOf(c.Params("id"))
	if err != nil {
		return memory.Bucket{}, err
	}
	buckets, err := d.Memories.ListBuckets(c.UserContext(), who.Identity)
	if err != nil {
		return memory.Bucket{}, err
	}
	i := slices.IndexFunc(buckets, func(b memory.Bucket) bool { return b.ID == id })
	if i < 0 {
		return memory.Bucket{}, memory.ErrBucketNotFound
	}
	return buckets[i], nil
}

func (d *Dashboard) editBucket(c *fiber.Ctx, who *tenant.Session) error {
	b, err := d.bucket(c, who)
	if err != nil {
		return err
	}
	form, err := d.form(c)
	if err != nil {
		return err
	}
	here := memoryFilter{bucket: b.ID}.path(0)
	change := changesOf(form, b)
	if change.Name == nil && change.Description == nil {
		return c.Redirect(withNotice(here, "unchanged"), fiber.StatusSeeOther)
	}
	if err := d.Memories.UpdateBucket(c.UserContext(), who.Identity, b.ID, change); err != nil {
		return d.rejectBucket(c, who, change, err)
	}
	return c.Redirect(withNotice(here, "saved"), fiber.StatusSeeOther)
}

func valuesOf(b memory.Bucket) memory.BucketInput {
	return memory.BucketInput{Name: b.Name, Description: b.Description}
}

// changesOf returns the values that the user changed. Those that they have seen are in the form, too.
func changesOf(form url.Values, b memory.Bucket) memory.BucketUpdate {
	seen := memory.BucketInput{Name: form.Get("seen-name"), Description: form.Get("seen-description")}
	change := memory.BucketUpdate{Replaces: &seen}
	if name := form.Get("name"); !b.Default && trimmed(name) != trimmed(seen.Name) {
		change.Name = &name
	}
	if description := lines(form.Get("description")); trimmed(description) != trimmed(seen.Description) {
		change.Description = &description
	}
	if trimmed(seen.Description) == trimmed(b.Description) {
		seen.Description = b.Description // which a form does not preserve exactly
	}
	return change
}

// rejectBucket renders the form with the rejected changes and the problem. Saved once more, they replace the current values only
// if the page has shown them.
func (d *Dashboard) rejectBucket(c *fiber.Ctx, who *tenant.Session, change memory.BucketUpdate, problem error) error {
	current, err := d.bucket(c, who)
	if err != nil {
		return err
	}
	view := bucketView{Bucket: current, Seen: valuesOf(current), Changed: errors.Is(problem, memory.ErrBucketChanged)}
	if change.Name != nil {
		view.Name = *change.Name
	}
	if change.Description != nil {
		view.Description = *change.Description
	}
	if change.Name != nil && !view.Changed {
		view.Seen.Name = change.Replaces.Name
	}
	if change.Description != nil && !view.Changed {
		view.Seen.Description = change.Replaces.Description
	}
	return d.renderBucket(c, who, view, problem)
}

func (d *Dashboard) deleteBucket(c *fiber.Ctx, who *tenant.Session) error {
	b, err := d.bucket(c, who)
	if err != nil {
		return err
	}
	if _, err := d.Memories.DeleteBucket(c.UserContext(), who.Identity, b.ID); err != nil {
		return err
	}
	return c.Redirect(withNotice("/memories", "bucket-deleted"), fiber.StatusSeeOther)
}
