package chat

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

func TestUpdate(t *testing.T) {
	t.Parallel()
	yes := true
	f := &fakes{conversations: []Conversation{{ID: "b"}, {ID: "a"}}}
	got, err := newService(f).Update(t.Context(), alice, UpdateInput{
		IDs: []string{"a", "\xff", "x", "b", "a\x00", "a", ""}, Flags: Flags{Pinned: &yes},
	})
	if diff := cmp.Diff([]string{"a", "b"}, got); diff != "" || err != nil {
		t.Errorf("in the order given, each once: %v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{"a", "x", "b", "a"}, f.flagged); diff != "" {
		t.Errorf("ids passed to the store (-want +got):\n%s", diff)
	}
}

func TestUpdateRejects(t *testing.T) {
	t.Parallel()
	yes := true
	for reason, in := range map[string]UpdateInput{
		"no ids":       {Flags: Flags{Pinned: &yes}},
		"too many ids": {IDs: make([]string, MaxBulk+1), Flags: Flags{Pinned: &yes}},
		"no flag":      {IDs: []string{"a"}},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			_, err := newService(&fakes{}).Update(t.Context(), alice, in)
			wantKind(t, err, fault.Invalid)
		})
	}
	unavailable := fault.New(fault.Unavailable, "store unavailable")
	_, err := newService(&fakes{storeFails: unavailable}).Update(t.Context(), alice, UpdateInput{IDs: []string{"a"}, Flags: Flags{Pinned: &yes}})
	if !errors.Is(err, unavailable) {
		t.Errorf("error = %v, want the store's", err)
	}
}
