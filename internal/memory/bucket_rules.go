package memory

import (
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// BucketNameKey returns the key that is unique among a user's buckets. Names that
// look the same to a reader have the same key: case is folded, characters are
// normalized, and invisible characters are ignored.
func BucketNameKey(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			return -1
		}
		return r
	}, name)
	// Folding can decompose a character, hence the second normalization.
	return strings.TrimSpace(norm.NFC.String(cases.Fold().String(norm.NFC.String(name))))
}

// BucketExists returns the error for a bucket name that exists already.
func BucketExists(name string) error {
	return fault.New(fault.Conflict, "bucket %q already exists", name)
}

// ErrTooManyBuckets rejects a new bucket of a user who has MaxBuckets.
var ErrTooManyBuckets error = fault.New(fault.Conflict, "there are already %d buckets, which is the maximum; delete one first", MaxBuckets)

// ErrBucketsChanging means that concurrent requests replace all buckets of the account.
var ErrBucketsChanging error = fault.New(fault.Unavailable, "the account's buckets are being changed; retry")

// ErrBucketChanged rejects an update that would replace other values than those that its author has seen.
var ErrBucketChanged error = fault.New(fault.Conflict, "the bucket was edited in the meantime; compare your changes with the current values, then save them again")

// CheckBucketUpdate returns Conflict if the update would rename the default bucket, and ErrBucketChanged if it is meant to
// replace other values.
func CheckBucketUpdate(b Bucket, u BucketUpdate) error {
	if b.Default && u.Name != nil && *u.Name != b.Name {
		return fault.New(fault.Conflict, "%s is the default bucket and cannot be renamed", b.Name)
	}
	if old := u.Replaces; old != nil && (u.Name != nil && b.Name != old.Name || u.Description != nil && b.Description != old.Description) {
		return ErrBucketChanged
	}
	return nil
}

// CheckBucketDelete returns Conflict for the default bucket.
func CheckBucketDelete(b Bucket) error {
	if b.Default {
		return fault.New(fault.Conflict, "%s is the default bucket and cannot be deleted", b.Name)
	}
	return nil
}
