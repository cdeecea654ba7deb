package apiserver

import (
	"archive/zip"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// files returns the files of a zip by name.
func files(t *testing.T, body string) map[string]string {
	t.Helper()
	zr, err := zip.NewReader(strings.NewReader(body), int64(len(body)))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range zr.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[f.Name] = string(text)
	}
	return out
}

// export returns an export. It retries, because the server that the tests share
// limits concurrent exports.
func (h *testServer) export(t *testing.T, token string) string {
	t.Helper()
	var got answer
	h.eventually(t, func() string {
		got = h.call(t, token, "GET", "/api/export", "")
		if got.status != http.StatusOK {
			return fmt.Sprintf("export: %d %s", got.status, got.body)
		}
		return ""
	})
	return got.body
}

// An export contains exactly the documented files (docs/export-format.md).
func TestExportShape(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	h.ok(t, h.alice, "POST", "/api/memory", `{"text":"2025-05-09 <window> seat","source":"cli"}`)
	h.ok(t, h.alice, "POST", "/api/chat-history/ingest/custom-online", ingestText)
	got := h.ok(t, h.alice, "GET", "/api/export", "")
	if ct, cd := got.header.Get("Content-Type"), got.header.Get("Content-Disposition"); ct != "application/zip" || cd != `attachment; filename="mnemo-export-2025-05-09.zip"` {
		t.Errorf("Content-Type %q, Content-Disposition %q", ct, cd)
	}
	want := map[string]string{
		"manifest.json": `{
  "format": "mnemo-export",
  "version": 1,
  "exportedAt": "2025-05-09T12:00:00.123456789Z",
  "lines": {
    "buckets.jsonl": 1,
    "conversations.jsonl": 1,
    "memories.jsonl": 1,
    "memory-versions.jsonl": 0,
    "messages.jsonl": 2
  }
}
`,
		"buckets.jsonl":         `{"id":1,"name":"General","description":"","default":true,"createdAt":"2025-05-09T12:00:00.123456789Z"}` + "\n",
		"memories.jsonl":        `{"id":"m-2","bucketId":1,"text":"2025-05-09 <window> seat","source":"cli","version":1,"createdAt":"2025-05-09T12:00:00.123456789Z","updatedAt":"2025-05-09T12:00:00.123456789Z","editedAt":"2025-05-09T12:00:00.123456789Z"}` + "\n",
		"memory-versions.jsonl": "",
		"conversations.jsonl":   `{"id":"c-3","platform":"custom","platformDisplayName":"","platformConversationId":"x-1","title":"Trains","status":"active","pinned":false,"messageCount":2,"createdAt":"2025-05-09T12:00:00Z","updatedAt":"2025-05-09T12:00:00.123456789Z"}` + "\n",
		"messages.jsonl": `{"conversationId":"c-3","message_index":0,"id":"1","sender":"human","text":"Which seat?","timestamp":"2025-05-09T12:00:00Z"}` + "\n" +
			`{"conversationId":"c-3","message_index":1,"id":"2","sender":"assistant","text":"By the window.","timestamp":"2025-05-09T12:00:01.5Z"}` + "\n",
	}
	if diff := cmp.Diff(want, files(t, got.body)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	op := h.operation("GET", "/api/export")
	if op.Responses["200"].Content["application/zip"] == nil || op.Responses["200"].Content["application/json"] != nil {
		t.Errorf("the OpenAPI file says %+v", op.Responses["200"].Content)
	}
}

// Errors before the response starts are ordinary error responses.
func TestExportErrorsBeforeTheResponse(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	h.ok(t, h.alice, "GET", "/api/chat-history/count", "") // its token is known
	h.stores.fail(fault.New(fault.Unavailable, "the database is unavailable; try again"))
	got := h.call(t, h.alice, "GET", "/api/export", "")
	if got.status != 503 || got.header.Get("Retry-After") == "" || got.header.Get("Content-Type") != "application/json" {
		t.Errorf("while the store is unavailable: %d %v %s", got.status, got.header, got.body)
	}
	h.stores.fail(nil)
	for range 20 { // nothing counts as still running
		h.ok(t, h.alice, "GET", "/api/export", "")
	}
}

// endless is an endless account that counts its readers.
type endless struct {
	fakeAccounts
	open  atomic.Int64
	after int   // memories until it fails
	fails error // nil for never
}

func (e *endless) Snapshot(ctx context.Context, _ tenant.Scope) (*account.Snapshot, error) {
	e.open.Add(1)
	return &account.Snapshot{Content: endlessContent{e, ctx}, At: noon, Close: func() { e.open.Add(-1) }}, nil
}

type endlessContent struct {
	*endless
	ctx context.Context
}

func (endlessContent) Buckets() iter.Seq2[account.Bucket, error] { return fakeContent{}.Buckets() }
func (endlessContent) Versions() iter.Seq2[account.Version, error] {
	return fakeContent{}.Versions()
}
func (endlessContent) Conversations() iter.Seq2[chat.Conversation, error] {
	return fakeContent{}.Conversations()
}
func (endlessContent) Messages() iter.Seq2[account.Message, error] { return fakeContent{}.Messages() }

func (e endlessContent) Memories() iter.Seq2[account.Memory, error] {
	return func(yield func(account.Memory, error) bool) {
		for n := 0; ; n++ {
			err := e.ctx.Err()
			if e.fails != nil && n == e.after {
				err = e.fails
			}
			if !yield(account.Memory{Text: noise()}, err) || err != nil {
				return
			}
		}
	}
}

// noise returns a text that compresses poorly.
func noise() string {
	raw := make([]byte, 2000)
	_, _ = rand.Read(raw) // never fails
	return base64.StdEncoding.EncodeToString(raw)
}

// begun starts an export and returns its response after the first bytes.
func (h *testServer) begun(t *testing.T, token string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+h.addr+"/api/export", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	got, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { got.Body.Close() })
	if _, err := io.ReadFull(got.Body, make([]byte, 1000)); err != nil || got.StatusCode != http.StatusOK {
		t.Fatalf("an export begins with %d, %v", got.StatusCode, err)
	}
	return got
}

// ends waits until the account has no readers.
func (e *endless) ends(t *testing.T, h *testServer, why string) {
	t.Helper()
	h.eventually(t, func() string {
		if n := e.open.Load(); n > 0 {
			return fmt.Sprintf("%s: %d snapshots are open", why, n)
		}
		return ""
	})
}

func newEndlessServer(t *testing.T, e *endless, change func(*Config)) *testServer {
	t.Helper()
	return newTestServer(t, func(c *Config) {
		c.Accounts = account.NewService(account.Config{Store: e})
		change(c)
	})
}

// A user can run one export at a time, a tenant two and a replica three: a tenant cannot
// keep the others from exporting. Rejected requests get Retry-After, and a disconnected
// client releases its slot.
func TestConcurrentExportsAreLimited(t *testing.T) {
	t.Parallel()
	e := &endless{}
	h := newEndlessServer(t, e, func(*Config) {})
	dave := h.user(t, tenant.Identity{Scope: tenant.Scope{Tenant: "one", User: 5}})
	erin := h.user(t, tenant.Identity{Scope: tenant.Scope{Tenant: "four", User: 6}})
	rejected := func(token string, status int, message string) {
		t.Helper()
		got := h.call(t, token, "GET", "/api/export", "")
		if got.status != status || got.header.Get("Retry-After") != "30" || !strings.Contains(got.body, message) {
			t.Errorf("%d %s, Retry-After %q; want %d %q, Retry-After 30", got.status, got.body, got.header.Get("Retry-After"), status, message)
		}
	}
	alice := h.begun(t, h.alice)
	rejected(h.alice, 429, "an export of this account is already running")
	bob := h.begun(t, h.bob)
	rejected(dave, 429, "other users of this tenant are running exports")
	carol := h.begun(t, h.carol)
	rejected(erin, 503, "too many exports are running")
	for _, open := range []*http.Response{alice, bob, carol} {
		open.Body.Close()
	}
	e.ends(t, h, "the clients disconnected")
	h.begun(t, dave).Body.Close()
	e.ends(t, h, "again")
}

// A client that reads nothing times out after the write timeout, and a slow client
// after the export timeout.
func TestSlowExportsTimeOut(t *testing.T) {
	t.Parallel()
	t.Run("Stalled", func(t *testing.T) {
		t.Parallel()
		e := &endless{}
		h := newEndlessServer(t, e, func(c *Config) { c.WriteTimeout = 200 * time.Millisecond })
		h.begun(t, h.alice)
		e.ends(t, h, "the client reads nothing")
		h.eventually(t, func() string {
			if !strings.Contains(h.log.String(), "the client reads too slowly") {
				return "the log does not say that the client is slow"
			}
			return ""
		})
	})
	t.Run("Slow", func(t *testing.T) {
		t.Parallel()
		e := &endless{}
		h := newEndlessServer(t, e, func(c *Config) { c.ExportTimeout = time.Second })
		begin := time.Now()
		_, err := io.Copy(io.Discard, h.begun(t, h.alice).Body)
		if err == nil || time.Since(begin) < time.Second/2 {
			t.Errorf("after %s: %v", time.Since(begin), err)
		}
		e.ends(t, h, "its time is over")
	})
}

// An export that fails midway is recognizably incomplete.
func TestFailedExportIsTruncated(t *testing.T) {
	t.Parallel()
	e := &endless{after: 1000, fails: errors.New("database connection lost")}
	h := newEndlessServer(t, e, func(*Config) {})
	if _, err := io.Copy(io.Discard, h.begun(t, h.alice).Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the answer ends with %v", err)
	}
	e.ends(t, h, "it failed")
	if !strings.Contains(h.log.String(), "database connection lost") {
		t.Error("the log does not say why")
	}
}

// Shutdown does not wait for exports longer than its deadline.
func TestShutdownEndsExports(t *testing.T) {
	t.Parallel()
	e := &endless{}
	h := newEndlessServer(t, e, func(*Config) {})
	got := h.begun(t, h.alice)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := h.Shutdown(ctx); err == nil {
		t.Error("it did not wait for the export at all")
	}
	e.ends(t, h, "the server stops")
	got.Body.Close()
}

func TestDeleteAccount(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	h.fill(t, h.alice)
	ids := h.fill(t, h.bob)
	for _, body := range []string{`{"confirm":"yes"}`, `{"confirm":""}`, `{"confirm":"DELETE EVERYTHING"}`} {
		if got := h.call(t, h.alice, "DELETE", "/api/account", body); got.status != 400 || !strings.Contains(got.body, `confirm must be \"delete everything\"`) {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
	got := h.ok(t, h.alice, "DELETE", "/api/account", `{"confirm":"delete everything"}`)
	if want := `{"message":"Account deleted","memories":1,"conversations":1}`; strings.TrimSpace(got.body) != want {
		t.Errorf("deleted: %s, want %s", got.body, want)
	}
	h.seesNothing(t, h.alice, "the user")
	h.ok(t, h.bob, "GET", ids.Replace("/api/memories/$m"), "")
}

// slow is a store whose purge never completes.
type slow struct{ account.Store }

func (slow) BeginPurge(context.Context, tenant.Scope) (account.PurgeCutoff, error) {
	return account.PurgeCutoff{}, nil
}

func (slow) Purge(ctx context.Context, _ tenant.Scope, _ account.PurgeCutoff) (account.Purged, error) {
	if err := ctx.Err(); err != nil {
		return account.Purged{}, err
	}
	return account.Purged{Memories: 1}, nil
}

func TestDeleteAccountContinuesInTheBackground(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(c *Config) {
		c.Accounts = account.NewService(account.Config{Store: slow{}, PurgeTime: 10 * time.Millisecond})
	})
	got := h.call(t, h.alice, "DELETE", "/api/account", `{"confirm":"delete everything"}`)
	if got.status != http.StatusAccepted || !strings.Contains(got.body, "deleted in the background") {
		t.Errorf("%d %s", got.status, got.body)
	}
}
