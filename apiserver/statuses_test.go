package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Every route reports unavailable and failing stores, without details.
func TestStoreErrors(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	for status, err := range map[int]error{
		503: fault.Wrap(fault.Unavailable, errors.New("secret"), "the database is unavailable; try again"),
		500: errors.New("secret"),
	} {
		h.stores.fail(err)
		for _, r := range requests {
			h.Cache.Clear()
			got := h.call(t, h.alice, r.method, r.path, r.body)
			if got.status != status || strings.Contains(got.body, "secret") {
				t.Errorf("%s %s: %d %s, want %d without detail", r.method, r.path, got.status, got.body, status)
			}
		}
	}
}

// Every route counts toward the rate limit and enforces it.
func TestEveryRouteCountsTowardTheRateLimit(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	h.limiter.Now = func() time.Time { return noon }
	token := h.user(t, tenant.Identity{Scope: tenant.Scope{Tenant: "few", User: 31}, Quota: tenant.Quota{RequestsPerMinute: 1}})
	h.ok(t, token, "GET", "/api/buckets", "")
	for _, r := range requests {
		if got := h.call(t, token, r.method, r.path, r.body); got.status != 429 {
			t.Errorf("%s %s with no request left: %d %s", r.method, r.path, got.status, got.body)
		}
	}
}

// Every route rejects large headers, and large bodies before reading them.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	body := strings.Repeat(" ", defaultBody+1)
	for _, r := range requests {
		if got := h.call(t, h.alice, r.method, r.path, r.body, "X-Padding", strings.Repeat("x", 20000)); got.status != 431 {
			t.Errorf("%s %s with 20,000 bytes of headers: %d %s", r.method, r.path, got.status, got.body)
		}
		if r.body == "" || h.operation(r.method, r.path).MaxBodyBytes > defaultBody+1 { // TestBodyLimits has larger ones
			continue
		}
		if got := h.call(t, h.alice, r.method, r.path, body); got.status != 413 {
			t.Errorf("%s %s with a body of %d bytes: %d %s", r.method, r.path, len(body), got.status, got.body)
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if got := h.call(t, "", "GET", path, "", "X-Padding", strings.Repeat("x", 20000)); got.status != 431 {
			t.Errorf("%s with 20,000 bytes of headers: %d %s", path, got.status, got.body)
		}
	}
}

// importForm is an encoded form with a file.
func importFormOf(t *testing.T, file string) (body string, headers []string) {
	t.Helper()
	body, contentType := encoded(t, "multipart/form-data", map[string]any{"file": file})
	return body, []string{"Content-Type", contentType}
}

// Invalid and oversized forms are rejected.
func TestImportForms(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(c *Config) { c.ImportFile, c.ReadTimeout = 1000, 200*time.Millisecond })
	const path = "/api/chat-history/import"
	good, form := importFormOf(t, "[]")
	large, largeForm := importFormOf(t, strings.Repeat(" ", 1001))
	huge, hugeForm := importFormOf(t, strings.Repeat(" ", formOverhead+2000))
	for name, tc := range map[string]struct {
		body    string
		headers []string
		status  int
	}{
		"Good":       {good, form, 202},
		"NoBody":     {"", nil, 400},
		"NoFile":     {strings.Replace(good, `name="file"`, `name="other"`, 1), form, 400},
		"BreaksOff":  {good[:len(good)-10], form, 400},
		"JSON":       {"[]", nil, 415},
		"Compressed": {good, append(slices.Clone(form), "Content-Encoding", "gzip"), 415},
		"Large":      {large, largeForm, 413},
		"Huge":       {huge, hugeForm, 413},
	} {
		if got := h.call(t, h.alice, "POST", path, tc.body, tc.headers...); got.status != tc.status {
			t.Errorf("%s: %d %s, want %d", name, got.status, got.body, tc.status)
		}
	}
	slow := h.raw(t, "POST "+path+" HTTP/1.1\r\nHost: x\r\nContent-Type: "+form[1]+"\r\nAuthorization: Bearer "+h.alice+"\r\nContent-Length: 30\r\n\r\n")
	theContract().seeRaw(t, "POST", path, slow)
	if !strings.HasPrefix(slow, "HTTP/1.1 408") {
		t.Errorf("a form that does not come: %q", slow)
	}
}

// A client that received the last event of a settled import gets 204.
func TestEventsEnd(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	h.stores.holdExamples(tenant.Scope{Tenant: "one", User: 1})
	path := "/api/chat-history/imports/" + exampleImportID + "/events"
	if got := h.call(t, h.alice, "GET", path, "", "Last-Event-ID", "1"); got.status != 204 {
		t.Errorf("after the last event: status = %d, want 204", got.status)
	} else if got.body != "" {
		t.Errorf("after the last event: body = %q, want it empty", got.body)
	}
	if got := h.call(t, h.alice, "GET", path, "", "Last-Event-ID", "0"); got.status != 200 || !strings.HasPrefix(got.body, ":\n\nid: 1\ndata: {") {
		t.Errorf("before the last event: %d %s", got.status, got.body)
	}
}

// importsOnce: the same file with the same key is the same import, and another file
// is a conflict.
func (h *testServer) importsOnce(t *testing.T, s realStores) {
	t.Helper()
	token := s.tenant(t, "impkey", "alice", false)
	send := func(file string) answer {
		body, headers := importFormOf(t, file)
		return h.call(t, token, "POST", "/api/chat-history/import", body, append(headers, "Idempotency-Key", "k-1")...)
	}
	first, again, other := send("[]"), send("[]"), send("[ ]")
	if first.status != 202 {
		t.Errorf("first.status = %d, want 202", first.status)
	}
	if again.status != 202 {
		t.Errorf("again.status = %d, want 202", again.status)
	}
	if first.body != again.body {
		t.Errorf("first.body = %v, want %v", first.body, again.body)
	}
	if other.status != 409 {
		t.Errorf("other.status = %d, want 409", other.status)
	}
}

// importsSeveral: each file of a request has its own outcome and name, and a repetition of
// the request returns the same imports.
func (h *testServer) importsSeveral(t *testing.T, s realStores) {
	t.Helper()
	token := s.tenant(t, "imany", "alice", false)
	files := []field{{"file", talksText(2)}, {"files", `{"hello":"there"}`}, {"files", strings.ReplaceAll(talksText(3), "talk-", "other-")}}
	key := []string{"Idempotency-Key", "k-1"}
	first, again := h.send(t, token, key, files...), h.send(t, token, key, files...)
	if first.status != 202 {
		t.Fatalf("%d %s", first.status, first.body)
	}
	if first.body != again.body {
		t.Errorf("a repetition is %s, want %s", again.body, first.body)
	}
	var started startedImportBody
	if err := json.Unmarshal([]byte(first.body), &started); err != nil {
		t.Fatal(err)
	}
	want := []string{"done 2 export.json", "failed 0 export.json", "done 3 export.json"}
	for i, one := range started.Imports {
		h.eventually(t, func() string {
			read := h.ok(t, token, "GET", "/api/chat-history/imports/"+one.ImportID, "").json(t)
			if got := fmt.Sprint(read["status"], " ", read["imported"], " ", read["file"]); got != want[i] {
				return fmt.Sprintf("file %d is %s, want %s", i, got, want[i])
			}
			return ""
		})
	}
	if list := h.ok(t, token, "GET", "/api/chat-history/imports", "").json(t); list["total"] != 3.0 {
		t.Errorf("%v imports, want 3", list["total"])
	}
}

// keepsDefaultBucket: the default bucket can be neither renamed nor deleted, and
// bucket names are unique.
func (h *testServer) keepsDefaultBucket(t *testing.T, s realStores) {
	t.Helper()
	token := s.tenant(t, "bucket", "alice", false)
	travel := h.ok(t, token, "POST", "/api/buckets", `{"name":"Travel"}`).header.Get("Location")
	h.ok(t, token, "POST", "/api/buckets", `{"name":"Work"}`)
	list := h.ok(t, token, "GET", "/api/buckets", "").body
	general := "/api/buckets/" + strings.Split(list, `"`)[3]
	for _, r := range []struct{ method, path, body, says string }{
		{"PATCH", general, `{"name":"Mine"}`, "cannot be renamed"},
		{"DELETE", general, "", "cannot be deleted"},
		{"PATCH", travel, `{"name":"WORK"}`, "already exists"},
		{"POST", "/api/buckets", `{"name":"travel"}`, "already exists"},
	} {
		if got := h.call(t, token, r.method, r.path, r.body); got.status != 409 || !strings.Contains(got.body, r.says) {
			t.Errorf("%s %s %s: %d %s, want 409 saying %q", r.method, r.path, r.body, got.status, got.body, r.says)
		}
	}
	if after := h.ok(t, token, "GET", "/api/buckets", "").body; after != list {
		t.Errorf("buckets are %s, were %s", after, list)
	}
}
