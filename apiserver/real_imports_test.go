package apiserver

import (
	"archive/zip"
	"bufio"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// talksText returns a Claude export with n conversations, one per day, the newest
// last, each with unique words.
func talksText(n int) string {
	var list []string
	for i := range n {
		at := time.Date(2025, 3, 1+i, 9, 0, 0, 0, time.UTC).Format(time.RFC3339)
		list = append(list, fmt.Sprintf(`{"uuid":"talk-%d","name":"Talk %d","created_at":%q,"updated_at":%q,"chat_messages":[`+
			`{"uuid":"q","sender":"human","created_at":%q,"text":"Where is the zeppelin%d moored?"},`+
			`{"uuid":"a","sender":"assistant","created_at":%q,"text":"At mast %d, behind the hangar."}]}`, i, i, at, at, at, i, at, i))
	}
	return "[" + strings.Join(list, ",") + "]"
}

// importState is the status of an import, as far as the tests use it.
type importState struct {
	Status                                                                 string
	Total, Imported, Updated, Skipped, Unchanged, Blocked, Failed, Indexed int
	Errors                                                                 []struct{ Conversation, Error string }
}

// imported uploads a file and waits until it is imported and indexed.
func (h *testServer) imported(t *testing.T, token, file string) (id string, i importState) {
	t.Helper()
	sent := h.send(t, token, nil, field{"file", file})
	id, _ = sent.json(t)["importId"].(string)
	if sent.status != 202 || id == "" {
		t.Fatalf("import: %d %s", sent.status, sent.body)
	}
	h.eventually(t, func() string {
		got := h.ok(t, token, "GET", "/api/chat-history/imports/"+id, "")
		if err := json.Unmarshal([]byte(got.body), &i); err != nil {
			t.Fatal(err)
		}
		if i.Status == "failed" || i.Status == "done" && i.Indexed == i.Total {
			return ""
		}
		return "it is still " + got.body
	})
	return id, i
}

// importsWithinQuota: the newest conversations of a file are active, the others are
// stored but neither counted nor found; freed quota goes to the newest of them.
func (h *testServer) importsWithinQuota(t *testing.T, s realStores) {
	t.Helper()
	token := s.tenant(t, "import", "alice", false) // quota of ten
	id, i := h.imported(t, token, talksText(14))
	if i.Total != 14 {
		t.Errorf("the import: i.Total = %d, want 14", i.Total)
	}
	if i.Imported != 14 {
		t.Errorf("the import: i.Imported = %d, want 14", i.Imported)
	}
	if i.Blocked != 4 {
		t.Errorf("the import: i.Blocked = %d, want 4", i.Blocked)
	}
	active := func(want int, newestBlocked int) string {
		count := strings.TrimSpace(h.ok(t, token, "GET", "/api/chat-history/count", "").body)
		blocked := h.ok(t, token, "GET", "/api/chat-history/chats?status=blocked&importId="+id, "")
		if count != fmt.Sprintf(`{"count":%d}`, want) || !strings.Contains(blocked.body, fmt.Sprintf(`"total":%d,`, newestBlocked+1)) {
			return fmt.Sprintf("count %s, blocked %s", count, blocked.body)
		}
		for n := range 14 {
			found := strings.Contains(h.ok(t, token, "POST", "/api/chat-history/search", fmt.Sprintf(`{"query":"zeppelin%d","limit":5}`, n)).body, fmt.Sprintf(`zeppelin%d moored`, n))
			title := strings.Contains(blocked.body, fmt.Sprintf(`"title":"Talk %d"`, n))
			if title != (n <= newestBlocked) || found && title {
				return fmt.Sprintf("conversation %d: blocked %t, found %t, where the newest blocked one is %d", n, title, found, newestBlocked)
			}
		}
		return ""
	}
	if problem := active(10, 3); problem != "" {
		t.Error(problem)
	}
	list := h.ok(t, token, "GET", "/api/chat-history/chats?title=Talk+13&importId="+id, "").json(t)["items"].([]any)
	h.ok(t, token, "DELETE", "/api/chat-history/chats", fmt.Sprintf(`{"ids":[%q]}`, list[0].(map[string]any)["id"]))
	h.eventually(t, func() string { return active(10, 2) })

	spec := s.spec("import")
	spec.Quota.Conversations = 12
	if _, err := s.db.Apply(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	h.eventually(t, func() string { return active(12, 0) })

	_, again := h.imported(t, token, talksText(14))
	if again.Unchanged != 13 {
		t.Errorf("imported again, with the deleted one: again.Unchanged = %d, want 13", again.Unchanged)
	}
	if again.Imported != 1 {
		t.Errorf("imported again, with the deleted one: again.Imported = %d, want 1", again.Imported)
	}
	if again.Failed+again.Updated != 0 {
		t.Errorf("imported again, with the deleted one: again.Failed + again.Updated = %d, want 0", again.Failed+again.Updated)
	}
}

// streamsImportsAcrossReplicas: another replica serves the events of an import, and
// continues where the first one stopped.
func (h *testServer) streamsImportsAcrossReplicas(t *testing.T, s realStores) {
	t.Helper()
	token := s.tenant(t, "joined", "alice", false)
	other := &testServer{log: &journal{}}
	config := h.Config
	config.Registry, config.Cache = nil, nil
	other.start(t, config)
	id := h.send(t, token, nil, field{"file", talksText(8)}).json(t)["importId"].(string)
	first := bufio.NewReader(h.follow(t.Context(), t, token, id, "").Body)
	last, data := event(t, first)
	second := bufio.NewReader(other.follow(t.Context(), t, token, id, last).Body)
	if !strings.Contains(data, `"status":"done"`) {
		if next, _ := event(t, second); next == last {
			t.Errorf("the other replica tells event %s again", last)
		}
	}
	// Both streams end with the same event.
	end := func(r *bufio.Reader) (last string) {
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return last
			}
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				last = data
			}
		}
	}
	a, b := end(first), end(second)
	if a != b && b != "" || !strings.Contains(a, `"status":"done","total":8,"imported":8`) || !strings.Contains(a, `"indexed":8`) {
		t.Errorf("one ends with\n%sthe other with\n%s", a, b)
	}
	if got := other.ok(t, token, "GET", "/api/chat-history/imports", ""); !strings.Contains(got.body, id) {
		t.Errorf("the other replica lists %s", got.body)
	}
}

// rejectsBadFiles: a damaged or hostile file fails with a reason, and nothing is
// imported.
func (h *testServer) rejectsBadFiles(t *testing.T, s realStores) {
	t.Helper()
	token := s.tenant(t, "broken", "alice", false)
	good := zipped(t, "conversations.json", talksText(3))
	bad := map[string]string{
		"text":           "Dear diary",
		"other JSON":     `[{"a":1}]`,
		"truncated JSON": talksText(3)[:300],
		"magic":          "PK\x03\x04............",
		"truncated zip":  good[:len(good)-30],
		"path":           zipped(t, "../../conversations.json", talksText(3)),
		"deep":           strings.Repeat("[", 100_000),
		"NUL":            "\x00" + talksText(3),
	}
	for name, file := range bad {
		_, i := h.imported(t, token, file)
		if i.Status != "failed" || i.Imported != 0 || len(i.Errors) != 1 || i.Errors[0].Error == "" || i.Errors[0].Conversation != "" {
			t.Errorf("%s: %+v", name, i)
		}
	}
	if got := h.ok(t, token, "GET", "/api/chat-history/chats?status=all", ""); !strings.Contains(got.body, `"total":0,`) {
		t.Errorf("something was imported: %s", got.body)
	}
}

// zipped returns a zip with one file.
func zipped(t *testing.T, name, text string) string {
	t.Helper()
	var b strings.Builder
	w := zip.NewWriter(&b)
	f, err := w.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
