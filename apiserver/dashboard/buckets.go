package dashboard

import (
	"slices"
	"strconv"

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
		if !fault.Is(problem, fault.Invalid) && !fault.Is(problem, fault.Conflict) {
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
	return d.renderBucket(c, who, bucketView{Bucket: b}, nil)
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
	description := lines(form.Get("description"))
	change := memory.BucketUpdate{Description: &description}
	b.Description = description
	if name := form.Get("name"); !b.Default {
		change.Name = &name
		b.Name = name
	}
	if err := d.Memories.UpdateBucket(c.UserContext(), who.Identity, b.ID, change); err != nil {
		return d.renderBucket(c, who, bucketView{Bucket: b}, err)
	}
	return c.Redirect(withNotice("/memories?bucket="+strconv.FormatInt(b.ID, 10), "saved"), fiber.StatusSeeOther)
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
