package memory

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func (f *fakes) Update(_ context.Context, _ tenant.Scope, e Edit) (int, error) {
	f.edited = e
	return 2, f.storeFails
}

func (f *fakes) Move(_ context.Context, _ tenant.Scope, in MoveInput) ([]string, error) {
	f.moved = in
	return in.IDs, f.storeFails
}

func (f *fakes) Versions(_ context.Context, _ tenant.Scope, _ string, _, limit int) ([]Version, bool, error) {
	return make([]Version, limit), true, f.storeFails
}

func (f *fakes) UpdateBucket(_ context.Context, _ tenant.Scope, _ int64, u BucketUpdate) error {
	f.renamed = u
	return f.storeFails
}

func (f *fakes) DeleteBucket(context.Context, tenant.Scope, int64) (int, error) {
	return 1, f.storeFails
}

func TestUpdateCreatesUnitsOfNewTextOnly(t *testing.T) {
	t.Parallel()
	f := filled(1)
	text := "2025-05-09 aisle seat"
	if v, err := newService(f).Update(t.Context(), alice, UpdateInput{ID: "m0", Text: &text}); err != nil || v != 2 {
		t.Fatalf("Update = %d, %v", v, err)
	}
	if len(f.edited.Units) != 1 {
		t.Fatalf("len(f.edited.Units) = %d, want 1", len(f.edited.Units))
	}
	if f.edited.Units[0].Lexical != text {
		t.Errorf("f.edited.Units[0].Lexical = %v, want %v", f.edited.Units[0].Lexical, text)
	}
	if f.edited.Tokens != 3 {
		t.Errorf("f.edited.Tokens = %d, want 3", f.edited.Tokens)
	}
	f = filled(1)
	if _, err := newService(f).Update(t.Context(), alice, UpdateInput{ID: "m0", Bucket: BucketRef{Name: " Work "}}); err != nil {
		t.Fatal(err)
	}
	if f.edited.Units != nil || f.edited.Bucket.Name != "Work" {
		t.Errorf("a move writes %+v", f.edited)
	}
}

func TestUpdateRejectsInvalidInput(t *testing.T) {
	t.Parallel()
	s := newService(filled(1))
	blank, long, nul := " \n", strings.Repeat("x", MaxText+1), "a\x00"
	for name, in := range map[string]UpdateInput{
		"nothing to change": {ID: "m0"},
		"blank text":        {ID: "m0", Text: &blank},
		"long text":         {ID: "m0", Text: &long},
		"U+0000":            {ID: "m0", Text: &nul},
		"blank name":        {ID: "m0", Bucket: BucketRef{Name: blank}},
		"U+0000 in a name":  {ID: "m0", Bucket: BucketRef{Name: nul}},
	} {
		if _, err := s.Update(t.Context(), alice, in); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, in := range map[string]MoveInput{
		"no ids":       {Bucket: BucketRef{ID: 1}},
		"too many ids": {IDs: make([]string, MaxMove+1), Bucket: BucketRef{ID: 1}},
		"no bucket":    {IDs: []string{"m0"}},
		"blank name":   {IDs: []string{"m0"}, Bucket: BucketRef{Name: blank}},
	} {
		if _, err := s.Move(t.Context(), alice, in); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"no name":   s.UpdateBucket(t.Context(), alice, 1, BucketUpdate{Name: &blank}),
		"no change": s.UpdateBucket(t.Context(), alice, 1, BucketUpdate{}),
		"long":      s.UpdateBucket(t.Context(), alice, 1, BucketUpdate{Description: &long}),
	} {
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("bucket, %s: %v", name, err)
		}
	}
}

// The error refers to the bucket the way the request did.
func TestMissingBucketError(t *testing.T) {
	t.Parallel()
	f := filled(1)
	f.storeFails = ErrBucketNotFound
	for want, b := range map[string]BucketRef{
		"bucket not found":                         {ID: 9},
		"no bucket has this name":                  {Name: "x"},
		"no bucket has both this id and this name": {ID: 9, Name: "x"},
	} {
		_, err := newService(f).Move(t.Context(), alice, MoveInput{IDs: []string{"m0"}, Bucket: b})
		if e, ok := errors.AsType[*fault.Error](err); !ok || e.Kind != fault.NotFound || e.Message != want {
			t.Errorf("%+v: %v, want %q", b, err, want)
		}
	}
}

func TestVersionsAreClamped(t *testing.T) {
	t.Parallel()
	s := newService(filled(1))
	list, hasMore, err := s.Versions(t.Context(), alice, "m0", 0, 5000)
	if err != nil || len(list) != MaxVersions || !hasMore {
		t.Errorf("Versions = %d, %v, %v", len(list), hasMore, err)
	}
	for _, bad := range [][2]int{{-1, 1}, {0, 0}} {
		_, _, err := s.Versions(t.Context(), alice, "m0", bad[0], bad[1])
		wantKind(t, err, fault.Invalid)
	}
}
