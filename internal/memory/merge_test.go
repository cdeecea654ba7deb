package memory

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

func TestMergeRemovesUnitsFromTheIndex(t *testing.T) {
	t.Parallel()
	f := filled(2)
	in := MergeInput{Kept: "m0", IDs: []string{"m1"}}
	got, err := newService(f).Merge(t.Context(), alice, in)
	if err != nil || !slices.Equal(got, in.IDs) {
		t.Fatalf("Merge = %v, %v", got, err)
	}
	if diff := cmp.Diff(in, f.merged); diff != "" {
		t.Errorf("input of the store (-want +got):\n%s", diff)
	}
	if len(f.removed) != 1 || f.removed[0] != 7 {
		t.Errorf("removed from the index: %v, want 7", f.removed)
	}
	f.indexFails = errors.New("no index") // the index job removes them
	if _, err := newService(f).Merge(t.Context(), alice, in); err != nil {
		t.Errorf("Merge without an index: %v", err)
	}
}

func TestMergeRejectsInvalidInput(t *testing.T) {
	t.Parallel()
	f := filled(2)
	s := newService(f)
	for name, in := range map[string]MergeInput{
		"no ids":          {Kept: "m0"},
		"too many ids":    {Kept: "m0", IDs: make([]string, MaxMerged+1)},
		"the kept memory": {Kept: "m0", IDs: []string{"m1", "M0"}},
	} {
		if _, err := s.Merge(t.Context(), alice, in); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.Unmerge(t.Context(), alice, UnmergeInput{Kept: "m0", IDs: make([]string, MaxMerged+1)}); !fault.Is(err, fault.Invalid) {
		t.Errorf("too many ids to restore: %v", err)
	}
	if f.merged.Kept != "" || f.unmerged.Kept != "" {
		t.Error("the store was called")
	}
	f.storeFails = errors.New("no store")
	if _, err := s.Merge(t.Context(), alice, MergeInput{Kept: "m0", IDs: []string{"m1"}}); !errors.Is(err, f.storeFails) {
		t.Errorf("Merge = %v, want the error of the store", err)
	}
	if _, err := s.Unmerge(t.Context(), alice, UnmergeInput{Kept: "m0"}); !errors.Is(err, f.storeFails) {
		t.Errorf("Unmerge = %v, want the error of the store", err)
	}
}

func TestGetMerged(t *testing.T) {
	t.Parallel()
	f := filled(2)
	f.memories[1].Merged = 1
	for id, want := range map[string]struct {
		into   string
		merged int
		kind   fault.Kind
	}{
		"m0": {"", 0, fault.Internal}, "m1": {"", 1, fault.Internal}, "m9": {"m0", 0, fault.Internal}, "m5": {"", 0, fault.NotFound},
	} {
		m, merged, err := newService(f).GetMerged(t.Context(), alice, id)
		if m.MergedInto != want.into || len(merged) != want.merged {
			t.Errorf("%s is merged into %q and has %d merged memories, want %q and %d", id, m.MergedInto, len(merged), want.into, want.merged)
		}
		if (err != nil) != (want.kind == fault.NotFound) || fault.KindOf(err) != want.kind {
			t.Errorf("%s: %v, want %v", id, err, want.kind)
		}
	}
}
