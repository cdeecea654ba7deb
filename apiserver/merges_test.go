package apiserver

import (
	"fmt"
	"strings"
	"testing"
)

// A memory that was merged keeps no others: a merge, and an undo of merges into it, name the memory that was kept.
func TestMergeIntoMergedMemory(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	var ids []any
	for i := range 3 {
		body := h.ok(t, h.alice, "POST", "/api/memory", fmt.Sprintf(`{"text":"Likes tea, as of day %d"}`, i)).body
		_, rest, _ := strings.Cut(body, `"memoryId":"`)
		id, _, _ := strings.Cut(rest, `"`)
		ids = append(ids, id)
	}
	h.ok(t, h.alice, "POST", fmt.Sprintf("/api/memories/%s/merge", ids[0]), fmt.Sprintf(`{"memoryIds":[%q]}`, ids[1]))
	got := h.call(t, h.alice, "POST", fmt.Sprintf("/api/memories/%s/merge", ids[1]), fmt.Sprintf(`{"memoryIds":[%q]}`, ids[2]))
	if want := fmt.Sprintf("the memory was merged into memory %s", ids[0]); got.status != 409 || !strings.Contains(got.body, want) {
		t.Errorf("%d %s, want 409 and %q", got.status, got.body, want)
	}
	got = h.call(t, h.alice, "POST", fmt.Sprintf("/api/memories/%s/unmerge", ids[1]), `{}`)
	if want := fmt.Sprintf("merged into memory %s", ids[0]); got.status != 409 || !strings.Contains(got.body, want) {
		t.Errorf("%d %s, want 409 and %q", got.status, got.body, want)
	}
}
