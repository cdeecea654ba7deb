package memory

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

var errUnavailable = errors.New("unavailable")

func TestCreateInputValidate(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		in     CreateInput
		want   string // a part of the message; "" for none
	}{
		"Plain":      {"ordinary text is valid", CreateInput{Text: "2025-05-09 likes trains"}, ""},
		"Longest":    {"the limit itself is allowed", CreateInput{Text: strings.Repeat("é", MaxText/2)}, ""},
		"Missing":    {"text is required", CreateInput{}, "text is required"},
		"Blank":      {"white space is blank", CreateInput{Text: " \n\t"}, "text is required"},
		"Invisible":  {"a reader sees no character", CreateInput{Text: "\u200b\ufeff \u2800"}, "text is required"},
		"TooLong":    {"the limit is in bytes", CreateInput{Text: strings.Repeat("é", MaxText/2) + "a"}, "text must be at most 32768 bytes"},
		"Zero":       {"PostgreSQL cannot hold U+0000", CreateInput{Text: "a\x00b"}, "text must not contain the character U+0000"},
		"NotUTF8":    {"only UTF-8 can be returned", CreateInput{Text: "a\xff"}, "text must be valid UTF-8"},
		"SourceZero": {"U+0000 is rejected in every field", CreateInput{Text: "a", Source: "\x00"}, "source must not contain"},
		"SourceLong": {"a source is a name", CreateInput{Text: "a", Source: strings.Repeat("x", 201)}, "source must be at most 200"},
		"Two":        {"every invalid field is reported", CreateInput{Source: strings.Repeat("x", 201)}, "blank; source"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := tc.in.Validate()
			if tc.want == "" {
				if err != nil {
					t.Errorf("%s: %v", tc.reason, err)
				}
				return
			}
			wantKind(t, err, fault.Invalid)
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %q does not say %q", tc.reason, err, tc.want)
			}
		})
	}
}

func TestCreateEmbedsIfAvailable(t *testing.T) {
	t.Parallel()
	f := filled(0)
	if _, err := newService(f).Create(t.Context(), alice, CreateInput{Text: "three small words"}); err != nil {
		t.Fatal(err)
	}
	if len(f.created.Units) != 1 {
		t.Errorf("len(f.created.Units) = %d, want 1", len(f.created.Units))
	}
	if f.created.Tokens != 3 {
		t.Errorf("f.created.Tokens = %d, want 3", f.created.Tokens)
	}

	if f.created.Prepared.Bucket != 7 || len(f.created.Prepared.Units) != 1 {
		t.Errorf("prepared: %+v, want what the store prepared for one unit", f.created.Prepared)
	}

	f.embedFails, f.prepareFails = errUnavailable, errUnavailable
	if _, err := newService(f).Create(t.Context(), alice, CreateInput{Text: "words"}); err != nil {
		t.Errorf("Create without the embedder and a preparation: %v, want success", err)
	}
	if len(f.created.Units) != 1 || f.created.Units[0].Vector != nil {
		t.Errorf("units = %+v, want one without a vector", f.created.Units)
	}
}

// slow is an embedder that returns only when its context is done.
type slow struct{ *fakes }

func (slow) Embed(ctx context.Context, _ []string) ([][]float32, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestCreateDoesNotWaitForTheEmbedder(t *testing.T) {
	t.Parallel()
	f := filled(0)
	s := newService(f)
	s.Embedders, s.EmbedTimeout = retrieve.Embedders{0: slow{f}}, time.Millisecond
	if _, err := s.Create(t.Context(), alice, CreateInput{Text: "words"}); err != nil {
		t.Fatal(err)
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	f := filled(2)
	f.indexFails = errUnavailable
	s := newService(f)
	if err := s.Delete(t.Context(), alice, "m1"); err != nil {
		t.Errorf("Delete without the index: %v, want success", err)
	}
	if diff := cmp.Diff([]retrieve.UnitID{1}, f.removed); diff != "" {
		t.Errorf("removed from the index (-want +got):\n%s", diff)
	}
	for _, id := range []string{"m1", "never", "", "a\x00", "\xff"} {
		wantKind(t, s.Delete(t.Context(), alice, id), fault.NotFound)
	}
	_, err := s.Get(t.Context(), alice, "m1")
	wantKind(t, err, fault.NotFound)
	if m, err := s.Get(t.Context(), alice, "m0"); err != nil || m.ID != "m0" {
		t.Errorf("Get = %+v, %v", m, err)
	}
}

func TestDeleteMany(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason       string
		ids          []string
		store, index error
		deleted      int
		errs         []string // memory ids of errors
	}{
		"Some":             {"unknown ids are skipped without an error", []string{"m0", "never", "m2", "\x00"}, nil, nil, 2, nil},
		"Merged":           {"the memories merged into it are deleted with it", []string{"m1"}, nil, nil, 3, nil},
		"Repeated":         {"a memory is deleted once", []string{"m0", "m0"}, nil, nil, 1, nil},
		"IndexUnavailable": {"memories are deleted, and the index failure is reported", []string{"m0"}, nil, errUnavailable, 1, []string{BulkIndex}},
		"StoreUnavailable": {"nothing was deleted", []string{"m0"}, errUnavailable, nil, 0, []string{BulkDatabase}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := filled(3)
			f.memories[1].Merged = 2
			f.storeFails, f.indexFails = tc.store, tc.index
			got, err := newService(f).DeleteMany(t.Context(), alice, tc.ids)
			if err != nil {
				t.Fatal(err)
			}
			var errs []string
			for _, e := range got.Errors {
				errs = append(errs, e.MemoryID)
			}
			if got.Deleted != tc.deleted || !cmp.Equal(errs, tc.errs) {
				t.Errorf("%s: deleted %d with errors %v, want %d with %v", tc.reason, got.Deleted, errs, tc.deleted, tc.errs)
			}
			if (got.Cause != nil) != (tc.errs != nil) {
				t.Errorf("%s: Cause = %v", tc.reason, got.Cause)
			}
		})
	}
	for _, list := range [][]string{nil, make([]string, MaxBulk+1)} {
		_, err := newService(filled(0)).DeleteMany(t.Context(), alice, list)
		wantKind(t, err, fault.Invalid)
	}
}

func TestCreateBucket(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		in     BucketInput
		want   fault.Kind // Internal for none
	}{
		"Plain":       {"an ordinary name", BucketInput{Name: "Travel"}, fault.Internal},
		"Longest":     {"100 characters, not bytes", BucketInput{Name: strings.Repeat("é", 100)}, fault.Internal},
		"SomeDigits":  {"only digits alone are confusing", BucketInput{Name: "2025 plans"}, fault.Internal},
		"Missing":     {"a name is required", BucketInput{}, fault.Invalid},
		"Blank":       {"white space is not a name", BucketInput{Name: "  "}, fault.Invalid},
		"TooLong":     {"101 characters", BucketInput{Name: strings.Repeat("é", 101)}, fault.Invalid},
		"Digits":      {"it could be mistaken for an id", BucketInput{Name: " 2025 "}, fault.Invalid},
		"Zero":        {"U+0000", BucketInput{Name: "a\x00"}, fault.Invalid},
		"Description": {"the description is limited too", BucketInput{Name: "a", Description: strings.Repeat("x", 1001)}, fault.Invalid},
		"Default":     {"the name of the default bucket is reserved, in any case", BucketInput{Name: "gEneral "}, fault.Conflict},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := newService(filled(0)).CreateBucket(t.Context(), alice, tc.in)
			if tc.want == fault.Internal {
				if err != nil {
					t.Errorf("%s: %v", tc.reason, err)
				}
				return
			}
			wantKind(t, err, tc.want)
		})
	}
}
