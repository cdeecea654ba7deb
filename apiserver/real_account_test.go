package apiserver

import (
	"bytes"
	"errors"
	"fmt"
	"mime/multipart"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// vectors returns the units of a tenant in the index, or those of PostgreSQL without one.
func (s realStores) vectors(t *testing.T, name string) ([]retrieve.UnitID, error) {
	t.Helper()
	id := tenant.ID(fmt.Sprintf("0196b2f4-0000-7000-8000-%012x", name))
	location, err := s.db.EnsurePlacement(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	missing, err := s.db.Unconfirmed(t.Context(), id, 0, 1000)
	if err != nil || len(missing) > 0 {
		return nil, fmt.Errorf("%d units are not confirmed: %w", len(missing), err)
	}
	if !location.Indexed() {
		return s.db.Live(t.Context(), id, 0, 1000)
	}
	return s.index.List(t.Context(), id, location, 0, 1000)
}

// holds waits until the index contains n vectors of a tenant.
func (h *testServer) holds(t *testing.T, s realStores, name string, n int) {
	t.Helper()
	h.eventually(t, func() string {
		list, err := s.vectors(t, name)
		if err != nil || len(list) != n {
			return fmt.Sprintf("the index holds %d vectors, want %d: %v", len(list), n, err)
		}
		return ""
	})
}

// exportsAndDeletesAccounts: an export contains exactly the user's data; deletion
// removes exactly that data with its vectors, and keeps the token.
func (h *testServer) exportsAndDeletesAccounts(t *testing.T, s realStores) {
	t.Helper()
	alice, bob, carol := s.tenant(t, "leave", "alice", false), s.tenant(t, "leave", "bob", false), s.tenant(t, "stay", "carol", false)
	ids := map[string]*strings.Replacer{alice: h.fill(t, alice), bob: h.fill(t, bob), carol: h.fill(t, carol)}
	h.holds(t, s, "leave", 6) // a memory and two messages each
	for token, own := range ids {
		got := files(t, h.export(t, token))
		all := fmt.Sprint(got)
		for other := range ids {
			for _, id := range []string{"$m", "$c"} {
				if has := strings.Contains(all, ids[other].Replace(id)); has != (other == token) {
					t.Errorf("another's id is in the export, or the own one is not: %t", has)
				}
			}
		}
		if !strings.Contains(got["buckets.jsonl"], own.Replace(`"id":$b,"name":"Travel"`)) || strings.Contains(all, "embedding") {
			t.Errorf("the export is %s", all)
		}
	}
	export := h.export(t, alice)
	got := h.ok(t, alice, "DELETE", "/api/account", `{"confirm":"delete everything"}`)
	if !strings.Contains(got.body, `"memories":1,"conversations":1`) {
		t.Errorf("deleted: %s", got.body)
	}
	h.seesNothing(t, alice, "the user that left")
	h.holds(t, s, "leave", 3)
	if got := files(t, h.export(t, alice)); got["memories.jsonl"]+got["messages.jsonl"]+got["conversations.jsonl"] != "" {
		t.Errorf("after the deletion the export is %v", got)
	}
	h.ok(t, bob, "GET", ids[bob].Replace("/api/memories/$m"), "")
	h.ok(t, carol, "GET", ids[carol].Replace("/api/chat-history/conversation?conversationId=$c"), "")
	h.restores(t, alice, export)
	h.holds(t, s, "leave", 6)
	h.seesAllOf(t, alice, ids[alice])
}

// restores imports an export and checks that a new export is identical.
func (h *testServer) restores(t *testing.T, token, export string) {
	t.Helper()
	h.restore(t, token, export)
	was, is := files(t, export), files(t, h.export(t, token))
	delete(was, "manifest.json") // it has the time
	delete(is, "manifest.json")
	if diff := cmp.Diff(was, is); diff != "" {
		t.Errorf("exported again (-want +got):\n%s", diff)
	}
}

// restore imports an export with the headers of a user, and waits for its end.
func (h *testServer) restore(t *testing.T, token, export string, headers ...string) {
	t.Helper()
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile("file", "mnemo-export.zip")
	if err == nil {
		_, err = part.Write([]byte(export))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	got := h.call(t, token, "POST", "/api/chat-history/import", form.String(), append(headers, "Content-Type", w.FormDataContentType())...)
	if got.status != 202 {
		t.Fatalf("import: %d %s", got.status, got.body)
	}
	path := "/api/chat-history/imports/" + got.json(t)["importId"].(string)
	h.eventually(t, func() string {
		got := h.call(t, token, "GET", path, "", headers...).body
		if !strings.Contains(got, `"status":"done"`) || !strings.Contains(got, `"platform":"mnemo"`) {
			return "the import is " + got
		}
		return ""
	})
}

// seesAllOf fails if a user does not find the objects of fill, by keyword and by
// meaning.
func (h *testServer) seesAllOf(t *testing.T, token string, ids *strings.Replacer) {
	t.Helper()
	for path, want := range map[string]string{
		"/api/memories/$m":                    `"id":"$m"`,
		"/api/memory?query=place+at+the+pane": `"id":"$m"`,
		"/api/chat-history/count":             `{"count":1}`,
	} {
		if got := h.ok(t, token, "GET", ids.Replace(path), ""); !strings.Contains(got.body, ids.Replace(want)) {
			t.Errorf("GET %s: %s", path, got.body)
		}
	}
	if got := h.ok(t, token, "POST", "/api/chat-history/search", `{"query":"where do I sit?"}`); !strings.Contains(got.body, ids.Replace(`"conversationId":"$c"`)) {
		t.Errorf("search: %s", got.body)
	}
}

// An account can be deleted while Milvus is unavailable; its vectors are deleted
// when Milvus is available again.
func TestDeleteAccountWhileMilvusIsUnavailable(t *testing.T) {
	t.Parallel()
	gate := testkit.NewGate(t, testkit.Milvus(t).Addr)
	gate.Open(t)
	h, s := newRealServerOn(t, openRealAt(t, gate.Addr))
	alice := s.tenant(t, "gated", "alice", false)
	h.fill(t, alice)
	h.holds(t, s, "gated", 3)
	gate.Close()
	h.ok(t, alice, "DELETE", "/api/account", `{"confirm":"delete everything"}`)
	h.seesNothing(t, alice, "the user that left")
	gate.Open(t)
	h.holds(t, s, "gated", 0)
}
