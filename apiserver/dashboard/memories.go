package dashboard

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/filter"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/textrule"
)

const (
	// memoryPage is the number of memories on a page.
	memoryPage = 25
	// source is the source of memories created here.
	source = "dashboard"
)

var degradedWarning = msg("Semantic search is temporarily unavailable. Showing keyword matches.")

// memoriesView is the list of memories.
type memoriesView struct {
	memoryFilter
	Buckets       []memory.Bucket
	Bucket        *memory.Bucket // the selected bucket; nil for all
	memory.Labels                // to filter by
	Total         int64          // all memories of the user
	Memories      []result       // all, or the relevant ones of a search
	Less          []result       // less relevant ones
	Similar       *similarView   // nil for none
	Newer         string         // paths; "" for none
	Older         string
	Here          string // path of this page
	Draft         string // a text that was rejected
	Chosen        int64  // the bucket for a new memory
	Problem       string // the reason
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

// memoryFilter selects memories; its fields are query parameters.
type memoryFilter struct {
	Query, Source, Tag, From, To string
	bucket                       int64
}

// Narrow reports whether the memories are filtered by source, tag or date.
func (f memoryFilter) Narrow() bool {
	return f.Source != "" || f.Tag != "" || f.From != "" || f.To != ""
}

// path returns the path of a page of the list.
func (f memoryFilter) path(skip int) string {
	q := url.Values{}
	for name, value := range map[string]string{"q": f.Query, "source": f.Source, "tag": f.Tag, "from": f.From, "to": f.To} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.bucket != 0 {
		q.Set("bucket", strconv.FormatInt(f.bucket, 10))
	}
	if skip > 0 {
		q.Set("skip", strconv.Itoa(skip))
	}
	if len(q) == 0 {
		return "/memories"
	}
	return "/memories?" + q.Encode()
}

// input converts the filter for the domain. To is inclusive.
func (f memoryFilter) input(skip int, zone *time.Location) (memory.ListInput, error) {
	var problems fault.Fields
	var conditions []filter.Filter
	labeled := func(name, label string, op filter.Op, field filter.Field) {
		if strings.ContainsRune(label, 0) || !utf8.ValidString(label) {
			problems.Add(name, "must be valid UTF-8 without the character U+0000")
		}
		if label != "" {
			conditions = append(conditions, filter.Filter{Op: op, Field: field, Values: []filter.Value{{Kind: filter.String, Text: label}}})
		}
	}
	labeled("source", f.Source, filter.Eq, filter.Source)
	labeled("tag", f.Tag, filter.Contains, filter.Tags)
	stored := func(op filter.Op, at time.Time) {
		conditions = append(conditions, filter.Filter{Op: op, Field: filter.CreatedAt, Values: []filter.Value{{Kind: filter.Time, Time: at}}})
	}
	start, end := span(&problems, f.From, f.To, zone)
	if !start.IsZero() {
		stored(filter.Gte, start)
	}
	if !end.IsZero() {
		stored(filter.Lt, end)
	}
	in := memory.ListInput{Bucket: f.bucket, Count: memoryPage, Newest: true, Query: f.Query, Skip: skip, MinScore: new(float64(0))}
	if len(conditions) > 0 {
		in.Where = filter.Filter{Op: filter.And, Operands: conditions}
	}
	return in, problems.Err()
}

func memoryFilterOf(c *fiber.Ctx, bucket int64) memoryFilter {
	return memoryFilter{Query: strings.TrimSpace(c.Query("q")), Source: c.Query("source"), Tag: c.Query("tag"), From: c.Query("from"), To: c.Query("to"), bucket: bucket}
}

func (d *Dashboard) listMemories(c *fiber.Ctx, who *tenant.Session) error {
	bucket, err := bucketOf(c.Query("bucket"))
	if err != nil {
		return err
	}
	return d.renderMemories(c, who, bucket, newMemory{}, nil)
}

// newMemory is a memory that was rejected.
type newMemory struct {
	text   string
	bucket int64 // the chosen one
}

// renderMemories renders the list, with a rejected draft and the problem.
func (d *Dashboard) renderMemories(c *fiber.Ctx, who *tenant.Session, bucket int64, draft newMemory, problem error) error {
	skip := max(c.QueryInt("skip"), 0)
	selected := memoryFilterOf(c, bucket)
	input, err := selected.input(skip, zoneOf(c))
	if err != nil {
		return err
	}
	listing, err := d.Memories.List(c.UserContext(), who.Identity, input)
	if err != nil {
		return err
	}
	view := memoriesView{memoryFilter: selected, Buckets: listing.Buckets, Here: selected.path(skip), Draft: draft.text}
	if view.Labels, err = d.Memories.Labels(c.UserContext(), who.Identity); err != nil {
		return err
	}
	if view.Similar, err = d.similarOf(c, who); err != nil {
		return err
	}
	view.fill(listing, bucket)
	view.choose(draft.bucket, bucket)
	if skip > 0 {
		view.Newer = selected.path(max(skip-memoryPage, 0))
	}
	if listing.NextSkip > 0 {
		view.Older = selected.path(listing.NextSkip)
	}
	p := page{Title: msg("Memories"), Section: "memories", Who: who}
	if view.Bucket != nil {
		p.Name = view.Bucket.Name
	}
	if listing.Degraded {
		p.Warning = degradedWarning
	}
	status := fiber.StatusOK
	if problem != nil {
		status, view.Problem = d.problem(c, problem)
	}
	p.Data = view
	return d.render(c, status, "memories", p)
}

// fill adds the memories and the selected bucket.
func (v *memoriesView) fill(listing memory.Listing, bucket int64) {
	for i, m := range listing.Memories {
		if v.Query != "" && i >= listing.Relevant {
			v.Less = append(v.Less, memoryResult(v.Query, m))
		} else {
			v.Memories = append(v.Memories, memoryResult(v.Query, m))
		}
	}
	for i, b := range listing.Buckets {
		v.Total += b.Memories
		if b.ID == bucket {
			v.Bucket = &listing.Buckets[i]
		}
	}
}

// choose selects the first of the buckets that exists for a new memory, or else the default one.
func (v *memoriesView) choose(ids ...int64) {
	for _, id := range ids {
		if slices.ContainsFunc(v.Buckets, func(b memory.Bucket) bool { return b.ID == id }) {
			v.Chosen = id
			return
		}
	}
	for _, b := range v.Buckets {
		if b.Default {
			v.Chosen = b.ID
		}
	}
}

func (d *Dashboard) addMemory(c *fiber.Ctx, who *tenant.Session) error {
	form, err := d.form(c)
	if err != nil {
		return err
	}
	text, back := trimmed(form.Get("text")), localPath(form.Get("back"), "/memories")
	bucket, err := bucketOf(form.Get("bucket"))
	var created memory.Created
	if err == nil {
		created, err = d.Memories.Create(c.UserContext(), who.Identity, memory.CreateInput{
			Text: d.withDate(text, form.Get("today")), Bucket: bucket, Source: source,
		})
	}
	if canRetry(err) {
		return d.rejectMemory(c, who, back, newMemory{text, bucket}, err)
	}
	if err != nil {
		return err
	}
	notice := "added"
	if created.Duplicate {
		notice = "duplicate"
	}
	return c.Redirect(withNotice(back, notice)+similarTo(created), fiber.StatusSeeOther)
}

// rejectMemory renders the page from which a memory was sent, with the memory and the problem; all memories if the bucket of
// the page does not exist.
func (d *Dashboard) rejectMemory(c *fiber.Ctx, who *tenant.Session, page string, draft newMemory, problem error) error {
	buckets, err := d.Memories.ListBuckets(c.UserContext(), who.Identity)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(buckets, func(b memory.Bucket) bool { return memoryFilter{bucket: b.ID}.path(0) == page })
	if i < 0 {
		return d.renderMemories(c, who, 0, draft, problem)
	}
	return d.renderMemories(c, who, buckets[i].ID, draft, problem)
}

// withDate adds a date to a text without one: the browser's date, or the current
// date in UTC.
func (d *Dashboard) withDate(text, today string) string {
	if textrule.IsBlank(text) || !splitDate(text).Date.IsZero() {
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
