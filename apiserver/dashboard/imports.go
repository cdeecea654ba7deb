package dashboard

import (
	"net/url"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/chatexport"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// minEstimate is the time after which the progress of an import says how long it takes.
const minEstimate = 2 * time.Second

// importView is the status of an import.
type importView struct {
	importer.Import
	Age time.Duration // since the import began
}

// Left estimates the remaining time of the import from its progress; the zero message if
// that says nothing yet.
func (v importView) Left() message {
	done, total := v.Done(), v.Total
	if v.Status == importer.Done {
		done, total = v.Searchable(), v.WithinQuota()
	} else if v.Status != importer.Running {
		return message{}
	}
	if done == 0 || done >= total || v.Age < minEstimate {
		return message{}
	}
	return remaining(time.Duration(float64(v.Age) / float64(done) * float64(total-done)))
}

// Final reports whether the number of conversations over quota no longer changes.
func (v importView) Final() bool { return v.Status == importer.Done }

// Done returns the number of processed conversations.
func (v importView) Done() int { return v.Imported + v.Updated + v.Skipped + v.Failed }

// WithinQuota returns the number of conversations that the quota covers.
func (v importView) WithinQuota() int { return max(v.Total-v.Blocked, 0) }

// Stored returns the number of conversations within quota that did not fail.
func (v importView) Stored() int { return max(v.Total-v.Blocked-v.Failed, 0) }

// Searchable returns the number of conversations within quota that need no
// further indexing. Indexed includes the blocked ones, which have nothing to embed.
func (v importView) Searchable() int { return min(max(v.Indexed-v.Blocked, 0), v.WithinQuota()) }

// importFile stores uploaded files and redirects to their import, or to the list of
// imports if there are several.
func (d *Dashboard) importFile(c *fiber.Ctx, who *tenant.Session) error {
	ids, err := d.Files.Import(c, who.Identity)
	if err != nil {
		return err
	}
	path := "/chats/imports"
	if len(ids) == 1 {
		path += "/" + url.PathEscape(ids[0])
	}
	if isScript(c) {
		c.Set(fiber.HeaderLocation, path)
		return c.SendStatus(fiber.StatusCreated)
	}
	return c.Redirect(path, fiber.StatusSeeOther)
}

func (d *Dashboard) showImport(c *fiber.Ctx, who *tenant.Session) error {
	i, err := d.Imports.Get(c.UserContext(), who.Identity, c.Params("id"))
	if err != nil {
		return err
	}
	for n := range i.Errors {
		i.Errors[n].Error = chatexport.ForEndUsers(i.Errors[n].Error)
	}
	return d.render(c, fiber.StatusOK, "import", page{Title: msg("Import (noun)"), Section: "chats", Who: who, Data: importView{i, d.Now().Sub(i.StartedAt)}})
}

// importsView is the list of imports.
type importsView struct {
	Imports      []importer.Import
	Newer, Older string
}

func (d *Dashboard) listImports(c *fiber.Ctx, who *tenant.Session) error {
	n := min(max(c.QueryInt("page", 1), 1), 1_000_000)
	list, total, err := d.Imports.List(c.UserContext(), who.Identity, (n-1)*chatPage, chatPage)
	if err != nil {
		return err
	}
	view := importsView{Imports: list}
	if n > 1 {
		view.Newer = "/chats/imports?page=" + strconv.Itoa(n-1)
	}
	if n*chatPage < total {
		view.Older = "/chats/imports?page=" + strconv.Itoa(n+1)
	}
	return d.render(c, fiber.StatusOK, "imports", page{Title: msg("Imports"), Section: "chats", Who: who, Data: view})
}
