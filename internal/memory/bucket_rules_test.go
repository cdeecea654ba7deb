package memory

import (
	"testing"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

func TestBucketNameKey(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		a, b   string
		equal  bool
	}{
		"Case":       {"case is folded", "Travel", "tRAVEL", true},
		"Fold":       {"folding covers characters without a single lower case", "Straße", "STRASSE", true},
		"Composed":   {"composed and decomposed characters are equal", "Caf\u00e9", "Cafe\u0301", true},
		"Invisible":  {"invisible characters are ignored", "Travel", "Tra\u200bvel", true},
		"Space":      {"surrounding space is ignored", " Travel ", "Travel", true},
		"Different":  {"different words are different names", "Travel", "Travels", false},
		"InnerSpace": {"space inside a name is significant", "To do", "Todo", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := BucketNameKey(tc.a) == BucketNameKey(tc.b); got != tc.equal {
				t.Errorf("%s: keys of %q and %q are equal: %v, want %v", tc.reason, tc.a, tc.b, got, tc.equal)
			}
		})
	}
}

func TestCheckBucketUpdateAndDelete(t *testing.T) {
	t.Parallel()
	general, other := Bucket{Name: DefaultBucket, Default: true}, Bucket{Name: "Travel"}
	name, description := "Trips", "Where to go"
	seen, outdated := &BucketInput{Name: "Travel"}, &BucketInput{Name: "Tours", Description: "By bus"}
	cases := map[string]struct {
		reason string
		err    error
		reject bool
	}{
		"RenameDefault":   {"the default bucket keeps its name", CheckBucketUpdate(general, BucketUpdate{Name: &name}), true},
		"SameName":        {"setting the same name changes nothing", CheckBucketUpdate(general, BucketUpdate{Name: &general.Name}), false},
		"DescribeDefault": {"the default bucket can be described", CheckBucketUpdate(general, BucketUpdate{Description: &description}), false},
		"RenameOther":     {"other buckets can be renamed", CheckBucketUpdate(other, BucketUpdate{Name: &name}), false},
		"SeenName":        {"a name that its author has seen is replaced", CheckBucketUpdate(other, BucketUpdate{Name: &name, Replaces: seen}), false},
		"ChangedName":     {"a name that has changed since is kept", CheckBucketUpdate(other, BucketUpdate{Name: &name, Replaces: outdated}), true},
		"Described":       {"a description that has changed since is kept", CheckBucketUpdate(other, BucketUpdate{Description: &description, Replaces: outdated}), true},
		"DeleteDefault":   {"the default bucket cannot be deleted", CheckBucketDelete(general), true},
		"DeleteOther":     {"other buckets can be deleted", CheckBucketDelete(other), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if rejected := fault.Is(tc.err, fault.Conflict); rejected != tc.reject {
				t.Errorf("%s: error %v, want a Conflict: %v", tc.reason, tc.err, tc.reject)
			}
		})
	}
}
