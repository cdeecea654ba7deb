package memory

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/textrule"
)

const (
	// MaxBuckets is the maximum number of buckets of a user, with the default one. An export with more could not be restored.
	MaxBuckets = 10_000
	// MaxBucketName is the maximum length of a bucket name, in characters.
	MaxBucketName = 100
	// MaxBucketDescription is the maximum length of a bucket description, in characters.
	MaxBucketDescription = 1000
)

// Validate returns one Invalid error for all invalid fields.
func (in BucketInput) Validate() error {
	var f fault.Fields
	checkBucketName(&f, in.Name)
	checkDescription(&f, in.Description)
	return f.Err()
}

// Validate returns one Invalid error for all invalid fields.
func (u BucketUpdate) Validate() error {
	var f fault.Fields
	if u.Name == nil && u.Description == nil {
		f.Add("name or description", "is required; there is nothing to change")
	}
	if u.Name != nil {
		checkBucketName(&f, *u.Name)
	}
	if u.Description != nil {
		checkDescription(&f, *u.Description)
	}
	return f.Err()
}

func checkBucketName(f *fault.Fields, given string) {
	name := strings.TrimSpace(given)
	switch n := utf8.RuneCountInString(name); {
	case textrule.IsBlank(name):
		f.Add("name", "is required and must not be blank")
	case n > MaxBucketName:
		f.Add("name", "must be at most %d characters, not %d", MaxBucketName, n)
	case digitsOnly(name):
		f.Add("name", "must not be digits only; it could be mistaken for an id")
	}
	if problem := textrule.NameProblem(name); problem != "" {
		f.Add("name", "%s", problem)
	}
	checkString(f, "name", given)
}

func checkDescription(f *fault.Fields, text string) {
	if n := utf8.RuneCountInString(text); n > MaxBucketDescription {
		f.Add("description", "must be at most %d characters, not %d", MaxBucketDescription, n)
	}
	checkString(f, "description", text)
}

// ListBuckets returns all buckets of the user, the default one first.
func (s *Service) ListBuckets(ctx context.Context, who tenant.Identity) ([]Bucket, error) {
	buckets, err := s.Buckets.ListBuckets(ctx, who.Scope)
	if err != nil {
		return nil, fmt.Errorf("list buckets: %w", err)
	}
	return buckets, nil
}

// CreateBucket creates a bucket and returns its id. It returns Invalid for an
// invalid input and Conflict if the name exists or the user has MaxBuckets.
func (s *Service) CreateBucket(ctx context.Context, who tenant.Identity, in BucketInput) (int64, error) {
	if err := in.Validate(); err != nil {
		return 0, err
	}
	in.Name = strings.TrimSpace(in.Name)
	// The default bucket may not exist yet, but its name is reserved.
	if strings.EqualFold(in.Name, DefaultBucket) {
		return 0, fault.New(fault.Conflict, "%q is the name of the default bucket; choose another name", in.Name)
	}
	id, err := s.Buckets.CreateBucket(ctx, who.Scope, in)
	if err != nil {
		return 0, fmt.Errorf("create bucket: %w", err)
	}
	return id, nil
}

// UpdateBucket changes a bucket's name or description. It returns Invalid for an
// invalid input, NotFound, and Conflict if the name exists, the default bucket
// would be renamed or the bucket has changed.
func (s *Service) UpdateBucket(ctx context.Context, who tenant.Identity, id int64, u BucketUpdate) error {
	if err := u.Validate(); err != nil {
		return err
	}
	if u.Name != nil {
		name := strings.TrimSpace(*u.Name)
		u.Name = &name
	}
	if err := s.Buckets.UpdateBucket(ctx, who.Scope, id, u); err != nil {
		return fmt.Errorf("update bucket: %w", err)
	}
	return nil
}

// DeleteBucket deletes a bucket and returns the number of memories it moved to the
// default bucket. It returns NotFound, and Conflict for the default bucket.
func (s *Service) DeleteBucket(ctx context.Context, who tenant.Identity, id int64) (int, error) {
	moved, err := s.Buckets.DeleteBucket(ctx, who.Scope, id)
	if err != nil {
		return 0, fmt.Errorf("delete bucket: %w", err)
	}
	return moved, nil
}

func digitsOnly(s string) bool {
	return strings.Trim(s, "0123456789") == ""
}
