package memory

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/textrule"
)

const (
	// MaxMove is the maximum number of memories in one move.
	MaxMove = 100
	// MaxVersions is the maximum number of versions in one page; higher counts are
	// clamped. Each version has up to MaxText bytes.
	MaxVersions = 100
	// MaxHistory is the maximum size in bytes of the versions of a memory before its current one, which are held in memory
	// when an export is restored.
	MaxHistory = 64 << 20
	// VersionSize is the size in bytes of a version in addition to its text.
	VersionSize = 256
	// CheckedVersions is the number of versions that may exceed MaxHistory.
	CheckedVersions = MaxHistory / (MaxText + VersionSize)
)

// ErrHistoryTooLarge rejects an edit after which the earlier versions would exceed MaxHistory.
var ErrHistoryTooLarge error = fault.New(fault.Invalid, "the versions of the memory would exceed %d MiB; store the text as a new memory", MaxHistory>>20)

// Errors for ids that do not resolve. They do not reveal whether the object never
// existed, was deleted, or belongs to another user.
var (
	ErrMemoryNotFound error = fault.New(fault.NotFound, "memory not found")
	ErrBucketNotFound error = fault.New(fault.NotFound, "bucket not found")
)

// ErrMemoryChanged rejects a text that would replace another version than the one that its author has seen.
var ErrMemoryChanged error = fault.New(fault.Conflict, "the memory was edited in the meantime; compare your text with the current one, then save it again")

// CheckUpdate returns ErrMemoryChanged if the text of the update is not meant to replace this version.
func CheckUpdate(version int, in UpdateInput) error {
	if in.Text != nil && in.Replaces != nil && *in.Replaces != version {
		return ErrMemoryChanged
	}
	return nil
}

// BucketRef identifies a bucket by its id, by its name (case-insensitive), or by
// both, which must match. The zero BucketRef identifies none.
type BucketRef struct {
	ID   int64
	Name string
}

// UpdateInput changes one memory: its text, its bucket, its attributes or all of them.
type UpdateInput struct {
	ID     string
	Text   *string   // nil if unchanged
	Bucket BucketRef // zero if unchanged
	// Replaces is the version that the text is meant to replace. If the memory has another one, nothing changes and the
	// error is ErrMemoryChanged. nil for any version.
	Replaces *int
	AttributeChanges
}

// Edit is an UpdateInput with the token count and units of its text.
type Edit struct {
	UpdateInput
	Tokens int
	Units  []retrieve.Unit // the store sets Owner and Group
	Links  Links           // replace those of the old text
}

// MoveInput moves memories into a bucket.
type MoveInput struct {
	IDs    []string
	Bucket BucketRef
}

// Version is the current or an earlier text of a memory.
type Version struct {
	Version   int // 1 is the first
	Text      string
	CreatedAt time.Time
}

// MissingMemories returns the error for a move that was rejected because of
// unknown ids, or nil if there are none.
func MissingMemories(ids []string) error {
	return rejected(ids, fmt.Sprintf("%d of the memories were not found; nothing was moved", len(ids)))
}

// Validate returns one Invalid error for all invalid fields.
func (in UpdateInput) Validate() error {
	_, err := in.checked()
	return err
}

// checked returns the input as it is stored, or one Invalid error for all invalid fields.
func (in UpdateInput) checked() (UpdateInput, error) {
	var f fault.Fields
	if in.Text == nil && in.Bucket == (BucketRef{}) && in.AttributeChanges.IsZero() {
		f.Add("text, bucket or attribute", "is required; there is nothing to change")
	}
	if in.Text != nil {
		checkText(&f, *in.Text)
	}
	in.Bucket = in.Bucket.checked(&f)
	in.AttributeChanges = in.Normalize(&f)
	return in, f.Err()
}

// checked returns the input as it is stored, or one Invalid error for all invalid fields.
func (in MoveInput) checked() (MoveInput, error) {
	var f fault.Fields
	if n := len(in.IDs); n == 0 || n > MaxMove {
		f.Add("memory ids", "must contain 1 to %d ids, not %d", MaxMove, n)
	}
	if in.Bucket == (BucketRef{}) {
		f.Add("target bucket", "is required")
	}
	in.Bucket = in.Bucket.checked(&f)
	return in, f.Err()
}

// checked returns the reference with the name as it is stored. It adds the problems to f; an empty name is ignored.
func (b BucketRef) checked(f *fault.Fields) BucketRef {
	if b.Name != "" && textrule.IsBlank(b.Name) {
		f.Add("bucket name", "must not be blank")
	}
	checkString(f, "bucket name", b.Name)
	b.Name = strings.TrimSpace(b.Name)
	return b
}

// checkText validates a memory's text.
func checkText(f *fault.Fields, text string) {
	switch {
	case textrule.IsBlank(text):
		f.Add("text", "is required and must not be blank")
	case len(text) > MaxText:
		f.Add("text", "must be at most %d bytes of UTF-8, not %d", MaxText, len(text))
	default:
		checkString(f, "text", text)
	}
}

// Update changes a memory and returns its version. It returns Invalid for an
// invalid input, NotFound for an unknown memory or bucket and Forbidden when the
// storage quota is exceeded, and ErrMemoryChanged. If the embedder is slow or unavailable, only semantic
// search of the new text is delayed.
func (s *Service) Update(ctx context.Context, who tenant.Identity, in UpdateInput) (int, error) {
	in, err := in.checked()
	if err != nil {
		return 0, err
	}
	edit := Edit{UpdateInput: in}
	if in.Text != nil {
		edit.Tokens, edit.Units = s.CountTokens(*in.Text), retrieve.MemoryUnits(*in.Text)
		subject, err := s.subjectAfter(ctx, who, in)
		if err != nil {
			return 0, err
		}
		edit.Links, _ = compare(*in.Text, s.similar(ctx, who, *in.Text, in.ID, subject, edit.Units))
	}
	version, err := s.Store.Update(ctx, who.Scope, edit)
	if err != nil {
		return 0, fmt.Errorf("update memory: %w", describeMissingBucket(err, in.Bucket))
	}
	return version, nil
}

// subjectAfter returns the subject of a memory after an update.
func (s *Service) subjectAfter(ctx context.Context, who tenant.Identity, in UpdateInput) (string, error) {
	if in.Metadata != nil {
		return Attributes{Metadata: *in.Metadata}.Subject(), nil
	}
	m, err := s.Get(ctx, who, in.ID)
	return m.Subject(), err
}

// Move moves up to MaxMove memories into a bucket, all of them or none, and returns
// their distinct ids. It returns Invalid for an invalid input and NotFound for an
// unknown bucket or, with RejectedIDs, for unknown memories.
func (s *Service) Move(ctx context.Context, who tenant.Identity, in MoveInput) ([]string, error) {
	in, err := in.checked()
	if err != nil {
		return nil, err
	}
	ids, err := s.Store.Move(ctx, who.Scope, in)
	if err != nil {
		return nil, fmt.Errorf("move memories: %w", describeMissingBucket(err, in.Bucket))
	}
	return ids, nil
}

// Versions returns a memory's versions, newest first, and reports whether more
// follow. It returns NotFound for an unknown memory and Invalid for a count below
// 1 or a negative skip.
func (s *Service) Versions(ctx context.Context, who tenant.Identity, id string, skip, count int) ([]Version, bool, error) {
	var f fault.Fields
	if count < 1 {
		f.Add("count", "must be at least 1, not %d", count)
	}
	if skip < 0 {
		f.Add("skip", "must be at least 0, not %d", skip)
	}
	if err := f.Err(); err != nil {
		return nil, false, err
	}
	list, hasMore, err := s.Store.Versions(ctx, who.Scope, id, skip, min(count, MaxVersions))
	if err != nil {
		return nil, false, fmt.Errorf("list versions: %w", err)
	}
	return list, hasMore, nil
}

// describeMissingBucket replaces ErrBucketNotFound if the bucket was given by name.
func describeMissingBucket(err error, b BucketRef) error {
	switch {
	case !errors.Is(err, ErrBucketNotFound) || b.Name == "":
		return err
	case b.ID == 0:
		return fault.New(fault.NotFound, "no bucket has this name")
	}
	return fault.New(fault.NotFound, "no bucket has both this id and this name")
}
