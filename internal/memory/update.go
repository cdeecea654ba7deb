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
)

const (
	// MaxMove is the most memories moved at once.
	MaxMove = 100
	// MaxVersions is the most versions one listing gives; more are clamped. A
	// version has up to MaxText bytes.
	MaxVersions = 100
)

// What an Editor or a BucketStore answers about what does not resolve, whether
// it never was, is gone, or is another's.
var (
	ErrNoMemory error = fault.New(fault.NotFound, "no memory has this memoryId")
	ErrNoBucket error = fault.New(fault.NotFound, "no bucket has this bucketId")
)

// BucketRef names a bucket: by its id, by its name without regard to case, or
// by both, which must agree. The zero BucketRef names none.
type BucketRef struct {
	ID   int64
	Name string
}

// UpdateInput changes one memory: its text, its bucket or both.
type UpdateInput struct {
	ID     string
	Text   *string   // nil to keep it
	Bucket BucketRef // zero to keep it
}

// Edit is what an Editor writes: the input with what was computed of its text.
type Edit struct {
	UpdateInput
	Tokens int
	Units  []retrieve.Unit // Owner and Group are given by the store
}

// MoveInput puts memories into a bucket.
type MoveInput struct {
	IDs    []string
	Bucket BucketRef
}

// Version is a text a memory has or had.
type Version struct {
	Version   int // 1 is the first
	Text      string
	CreatedAt time.Time
}

// Editor changes stored memories. The usage row is locked, and rows, quota use
// and index job are committed together, as in Store.
type Editor interface {
	// Update changes a memory and returns its version then. A text that differs
	// is appended as a version and makes new units; one that does not changes
	// nothing. ErrNoMemory, ErrNoBucket, or Forbidden when the storage quota
	// has no room for another version.
	Update(ctx context.Context, scope tenant.Scope, e Edit) (int, error)
	// Move puts all of the memories into the bucket and returns their ids, each
	// once; or moves none and returns ErrNoBucket, or NotFound with the
	// RejectedIDs that do not resolve.
	Move(ctx context.Context, scope tenant.Scope, in MoveInput) ([]string, error)
	// Versions returns a memory's versions, newest first, and whether more
	// follow; ErrNoMemory.
	Versions(ctx context.Context, scope tenant.Scope, id string, skip, limit int) ([]Version, bool, error)
}

// Validate reports what is wrong with the input, as one Invalid error.
func (in UpdateInput) Validate() error {
	var f fault.Fields
	if in.Text == nil && in.Bucket == (BucketRef{}) {
		f.Add("text, bucketId or bucketName", "is required: there is nothing to change")
	}
	if in.Text != nil {
		checkText(&f, *in.Text)
	}
	in.Bucket.check(&f)
	return f.Err()
}

// Validate reports what is wrong with the input, as one Invalid error.
func (in MoveInput) Validate() error {
	var f fault.Fields
	if n := len(in.IDs); n == 0 || n > MaxMove {
		f.Add("memoryIds", "must hold 1 to %d ids, not %d", MaxMove, n)
	}
	if in.Bucket == (BucketRef{}) {
		f.Add("bucketId or bucketName", "is required: it says where to move the memories")
	}
	in.Bucket.check(&f)
	return f.Err()
}

// check notes what is wrong with the name; an empty one is none.
func (b BucketRef) check(f *fault.Fields) {
	if b.Name != "" && !strings.ContainsFunc(b.Name, visible) {
		f.Add("bucketName", "must not be blank")
	}
	checkString(f, "bucketName", b.Name)
}

// checkText notes what is wrong with a memory's text.
func checkText(f *fault.Fields, text string) {
	switch {
	case strings.TrimSpace(text) == "":
		f.Add("text", "is required and must not be blank")
	case len(text) > MaxText:
		f.Add("text", "must be at most %d bytes of UTF-8, not %d", MaxText, len(text))
	default:
		checkString(f, "text", text)
	}
}

// Update changes a memory and returns its version then. Invalid for a bad
// input, NotFound for an unknown memory or bucket, Forbidden when storage is
// used up. An embedder that is late only delays its being found by meaning.
func (s *Service) Update(ctx context.Context, who tenant.Identity, in UpdateInput) (int, error) {
	if err := in.Validate(); err != nil {
		return 0, err
	}
	in.Bucket.Name = strings.TrimSpace(in.Bucket.Name)
	edit := Edit{UpdateInput: in}
	if in.Text != nil {
		edit.Tokens, edit.Units = s.CountTokens(*in.Text), retrieve.MemoryUnits(*in.Text)
		s.embed(ctx, edit.Units)
	}
	version, err := s.Store.Update(ctx, who.Scope, edit)
	if err != nil {
		return 0, fmt.Errorf("update memory: %w", aboutBucket(err, in.Bucket))
	}
	return version, nil
}

// Move puts up to MaxMove memories into a bucket, all of them or none, and
// returns their ids, each once. Invalid for a bad input, NotFound for an
// unknown bucket, and with RejectedIDs for unknown memories.
func (s *Service) Move(ctx context.Context, who tenant.Identity, in MoveInput) ([]string, error) {
	if err := in.Validate(); err != nil {
		return nil, err
	}
	in.Bucket.Name = strings.TrimSpace(in.Bucket.Name)
	ids, err := s.Store.Move(ctx, who.Scope, in)
	if err != nil {
		return nil, fmt.Errorf("move memories: %w", aboutBucket(err, in.Bucket))
	}
	return ids, nil
}

// Versions returns a memory's versions, newest first, and whether more follow;
// NotFound. Invalid for a count below 1 or a negative skip.
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
	list, more, err := s.Store.Versions(ctx, who.Scope, id, skip, min(count, MaxVersions))
	if err != nil {
		return nil, false, fmt.Errorf("list versions: %w", err)
	}
	return list, more, nil
}

// aboutBucket words ErrNoBucket by how the bucket was named.
func aboutBucket(err error, b BucketRef) error {
	switch {
	case !errors.Is(err, ErrNoBucket) || b.Name == "":
		return err
	case b.ID == 0:
		return fault.New(fault.NotFound, "no bucket has this bucketName")
	}
	return fault.New(fault.NotFound, "no bucket has both this bucketId and this bucketName")
}
