package dashboard

import (
	"slices"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/sample"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func (d *Dashboard) samples() sample.Service {
	return sample.Service{Memories: d.Memories, Chats: d.Chats}
}

func (d *Dashboard) addSample(c *fiber.Ctx, who *tenant.Session) error {
	return d.changeSample(c, "sample-added", func() error { return d.samples().Add(c.UserContext(), who.Identity, d.Now()) })
}

func (d *Dashboard) removeSample(c *fiber.Ctx, who *tenant.Session) error {
	return d.changeSample(c, "sample-removed", func() error { return d.samples().Remove(c.UserContext(), who.Identity) })
}

func (d *Dashboard) changeSample(c *fiber.Ctx, notice string, change func() error) error {
	form, err := d.form(c)
	if err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	return c.Redirect(withNotice(localPath(form.Get("back"), "/memories"), notice), fiber.StatusSeeOther)
}

// HasSample reports whether sample memories exist, so that the page offers to remove them.
func (v memoriesView) HasSample() bool { return slices.Contains(v.Sources, sample.Source) }

// HasSample reports whether the page lists a sample conversation.
func (v chatsView) HasSample() bool {
	return slices.ContainsFunc(v.Chats, func(l listed) bool { return l.Platform == sample.Platform })
}
