package dashboard

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// memoryPage is the number of memories on a page.
	memoryPage = 25
	// source is the source of memories created here.
	source = "dashboard"

	degradedWarning = "Semantic search is temporarily unavailable. Showing keyword matches."
)

// memoriesView is the list of memories.
type memoriesView struct {
	Buckets  []memory.Bucket
	Bucket   *memory.Bucket // the selected bucket; nil for all
	Total    int64          // all memories of the user
	Query    string
	Memories []result // all, or the relevant ones of a search
	Less     []result // less relevant ones
	From     int      // position of the first memory, starting at 1
	Newer    string   // paths; "" for none
	Older    string
	Here     string // path of this page
	Draft    string // a text that was rejected
	Problem  string // the reason
}

// Empty reports whether the user has no memories.
func (v memoriesView) Empty() bool { return v.Total == 0 }

// BucketID returns the selected bucket, 0 for all.
func (v memoriesView) BucketID() int64 {
	if v.Bucket == nil {
		return 0
	}
	return v.Bucket.ID
}

// memoriesPath returns the path of a page of the list.
func memoriesPath(bucket int64, query string, skip int) string {
	q := url.Values{}
	if bucket != 0 {
		q.Set("bucket", strconv.FormatInt(bucket, 10))
	}
	if query != "" {
		q.Set("q", query)
	}
	if skip > 0 {
		q.Set("skip", strconv.Itoa(skip))
	}
	if len(q) == 0 {
		return "/memories"
	}
	return "/memories?" + q.Encode()
}

func (d *Dashboard) listMemories(c *fiber.Ctx, who *tenant.Session) error {
	bucket, err := bucketOf(c.Query("bucket"))
	if err != nil {
		return err
	}
	return d.renderMemories(c, who, bucket, "", nil)
}

// renderMemories renders the list, with a rejected draft and the problem.
func (d *Dashboard) renderMemories(c *fiber.Ctx, who *tenant.Session, bucket int64, draft string, problem error) error {
	skip := max(c.QueryInt("skip"), 0)
	query := strings.TrimSpace(c.Query("q"))
	listing, err := d.Memories.List(c.UserContext(), who.Identity, memory.ListInput{
		Bucket: bucket, Count: memoryPage, Newest: true, Query: query, Skip: skip, MinScore: new(float64(0)),
	})
	if err != nil {
		return err
	}
	view := memoriesView{Buckets: listing.Buckets, Query: query, From: skip + 1,
		Here: memoriesPath(bucket, query, skip), Draft: draft}
	for i, m := range listing.Memories {
		if query != "" && i >= listing.Relevant {
			view.Less = append(view.Less, memoryResult(query, m))
		} else {
			view.Memories = append(view.Memories, memoryResult(query, m))
		}
	}
	title := "Memories"
	for i, b := range listing.Buckets {
		view.Total += b.Memories
		if b.ID == bucket {
			view.Bucket, title = &listing.Buckets[i], b.Name
		}
	}
	if skip > 0 {
		view.Newer = memoriesPath(bucket, query, max(skip-memoryPage, 0))
	}
	if listing.NextSkip > 0 {
		view.Older = memoriesPath(bucket, query, listing.NextSkip)
	}
	p := page{Title: title, Section: "memories", Who: who}
	if listing.Degraded {
		p.Warning = degradedWarning
	}
	status := fiber.StatusOK
	if problem != nil {
		status, view.Problem, _ = d.Server.HTTPError(c.UserContext(), problem)
		view.Problem = sentence(view.Problem)
	}
	p.Data = view
	return d.render(c, status, "memories", p)
}

func (d *Dashboard) addMemory(c *fiber.Ctx, who *tenant.Session) error {
	form, err := d.form(c)
	if err != nil {
		return err
	}
	bucket, err := bucketOf(form.Get("bucket"))
	if err != nil {
		return err
	}
	text := strings.TrimSpace(lines(form.Get("text")))
	created, err := d.Memories.Create(c.UserContext(), who.Identity, memory.CreateInput{
		Text: d.withDate(text, form.Get("today")), Bucket: bucket, Source: source,
	})
	if fault.Is(err, fault.Invalid) || fault.Is(err, fault.Forbidden) {
		return d.renderMemories(c, who, 0, text, err)
	}
	if err != nil {
		return err
	}
	notice := "added"
	if created.Duplicate {
		notice = "duplicate"
	}
	return c.Redirect(withNotice(localPath(form.Get("back"), "/memories"), notice), fiber.StatusSeeOther)
}

// withDate adds a date to a text without one: the browser's date, or the current
// date in UTC.
func (d *Dashboard) withDate(text, today string) string {
	if text == "" || !dated(text).Date.IsZero() {
		return text
	}
	if _, err := time.Parse(time.DateOnly, today); err != nil {
		today = d.Now().UTC().Format(time.DateOnly)
	}
	return today + " " + text
}

func (d *Dashboard) moveMemories(c *fiber.Ctx, who *tenant.Session) error {
	form, err := d.form(c)
	if err != nil {
		return err
	}
	ids, back := chosen(form), localPath(form.Get("back"), "/memories")
	bucket, err := bucketOf(form.Get("to"))
	if err != nil {
		return err
	}
	if len(ids) == 0 || bucket == 0 {
		return c.Redirect(withNotice(back, "unchanged"), fiber.StatusSeeOther)
	}
	if _, err := d.Memories.Move(c.UserContext(), who.Identity, memory.MoveInput{IDs: ids, Bucket: memory.BucketRef{ID: bucket}}); err != nil {
		return err
	}
	return c.Redirect(withNotice(back, "moved"), fiber.StatusSeeOther)
}

// bucketOf parses a bucket id, 0 for none.
func bucketOf(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, memory.ErrBucketNotFound
	}
	return id, nil
}
