package memory

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// MaxBucketName is the longest name of a bucket, characters.
	MaxBucketName = 100
	// MaxBucketDescription is the longest description of a bucket, characters.
	MaxBucketDescription = 1000
)

// Validate reports what is wrong with the input, as one Invalid error.
func (in BucketInput) Validate() error {
	var f fault.Fields
	name := strings.TrimSpace(in.Name)
	switch n := utf8.RuneCountInString(name); {
	case n == 0:
		f.Add("name", "is required and must not be blank")
	case n > MaxBucketName:
		f.Add("name", "must be at most %d characters, not %d", MaxBucketName, n)
	case digitsOnly(name):
		f.Add("name", "must not be digits only, so that it cannot be taken for a bucketId")
	}
	checkString(&f, "name", in.Name)
	if n := utf8.RuneCountInString(in.Description); n > MaxBucketDescription {
		f.Add("description", "must be at most %d characters, not %d", MaxBucketDescription, n)
	}
	checkString(&f, "description", in.Description)
	return f.Err()
}

// ListBuckets returns all buckets of the user, the default one first.
func (s *Service) ListBuckets(ctx context.Context, who tenant.Identity) ([]Bucket, error) {
	buckets, err := s.Buckets.ListBuckets(ctx, who.Scope)
	if err != nil {
		return nil, fmt.Errorf("list buckets: %w", err)
	}
	return buckets, nil
}

// CreateBucket makes a bucket and returns its id. Invalid for a bad input,
// Conflict when the name is taken without regard to case.
func (s *Service) CreateBucket(ctx context.Context, who tenant.Identity, in BucketInput) (int64, error) {
	if err := in.Validate(); err != nil {
		return 0, err
	}
	in.Name = strings.TrimSpace(in.Name)
	// The default bucket may not have been made yet, but its name is taken.
	if strings.EqualFold(in.Name, DefaultBucket) {
		return 0, fault.New(fault.Conflict, "name %q is the default bucket's; choose another", in.Name)
	}
	id, err := s.Buckets.CreateBucket(ctx, who.Scope, in)
	if err != nil {
		return 0, fmt.Errorf("create bucket: %w", err)
	}
	return id, nil
}

func digitsOnly(s string) bool {
	return strings.Trim(s, "0123456789") == ""
}
