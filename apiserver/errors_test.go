package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Every error kind has its status, body and headers.
func TestErrorKinds(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err    error
		status int
		body   string
		header string // name of one that must be there
	}{
		"Internal":    {errors.New("secret detail"), 500, `{"error":"` + httpx.InternalError + `","code":"internal","requestId":"r-1"}`, ""},
		"Invalid":     {fault.New(fault.Invalid, "a is wrong"), 400, `{"error":"a is wrong","code":"invalid"}`, ""},
		"Forbidden":   {fault.New(fault.Forbidden, "quota used up"), 403, `{"error":"quota used up","code":"forbidden"}`, ""},
		"Wrapped":     {fmt.Errorf("secret: %w", fault.New(fault.NotFound, "gone")), 404, `{"error":"gone","code":"not_found"}`, ""},
		"Cause":       {fault.Wrap(fault.Conflict, errors.New("secret"), "taken"), 409, `{"error":"taken","code":"conflict"}`, ""},
		"Rejected":    {&fault.Error{Kind: fault.NotFound, Message: "some are gone", RejectedIDs: []string{"x"}}, 404, `{"error":"some are gone","code":"not_found","rejectedIds":["x"]}`, ""},
		"RateLimited": {&fault.Error{Kind: fault.RateLimited, Message: "slow down", RetryAfter: 1500 * time.Millisecond}, 429, `{"error":"slow down","code":"rate_limited"}`, "2"},
		"Unavailable": {fault.New(fault.Unavailable, "the database is unavailable"), 503, `{"error":"the database is unavailable","code":"unavailable"}`, "5"},
		"Quota": {
			fmt.Errorf("reserve: %w", tenant.QuotaExceeded{Resource: tenant.ResourceMemories, Limit: 10}), 403,
			`{"error":"memory quota exceeded (limit 10); delete some data or ask your administrator for a higher quota","code":"quota_exceeded"}`, "",
		},
		"KeyReused": {tenant.ErrKeyReused, 409, `{"error":"` + tenant.ErrKeyReused.Error() + `","code":"idempotency_key_reused"}`, ""},
		"Suspended": {tenant.ErrSuspended, 403, `{"error":"` + tenant.ErrSuspended.Error() + `","code":"tenant_suspended"}`, ""},
		"Late":      {fmt.Errorf("query: %w", context.DeadlineExceeded), 503, `{"error":"request timed out; try again","code":"unavailable"}`, "5"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newTestServer(t)
			h.ok(t, h.alice, "GET", "/api/buckets", "") // the token is known from here on
			h.stores.fail(tc.err)
			got := h.call(t, h.alice, "PATCH", "/api/buckets/1", `{"name":"a"}`, "X-Request-Id", "r-1")
			if got.status != tc.status {
				t.Errorf("status = %v, want %v", got.status, tc.status)
			}
			if got.header.Get("Retry-After") != tc.header {
				t.Errorf("Retry-After = %v, want %v", got.header.Get("Retry-After"), tc.header)
			}
			if got.header.Get("X-Request-Id") != "r-1" {
				t.Errorf(`X-Request-Id = %q, want "r-1"`, got.header.Get("X-Request-Id"))
			}
			if diff := cmp.Diff(tc.body, strings.TrimSpace(got.body)); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
			if tc.status >= 500 && !strings.Contains(h.log.String(), "r-1") {
				t.Errorf("the log does not name the request: %s", h.log)
			}
		})
	}
}

// panicking is a token store with a bug.
type panicking struct{ tenant.TokenStore }

func (panicking) Identify(context.Context, tenant.Hash) (tenant.Identity, error) { panic("secret") }

func TestPanicsReturnInternalErrors(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(c *Config) { c.Tokens = panicking{c.Tokens} })
	got := h.call(t, h.alice, "GET", "/api/buckets", "")
	if got.status != 500 || strings.Contains(got.body, "secret") || got.json(t)["requestId"] == "" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if !strings.Contains(h.log.String(), "panic: secret") {
		t.Errorf("log: %s", h.log)
	}
}

// Probes succeed while the database is unavailable, and metrics exclude them.
func TestProbes(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	h.stores.fail(fault.New(fault.Unavailable, "PostgreSQL is unavailable"))
	for _, path := range []string{pathHealthz, pathReadyz} {
		h.ok(t, "", "GET", path, "")
	}
	if got := h.call(t, h.alice, "GET", "/api/buckets", ""); got.status != 503 || got.header.Get("Retry-After") == "" {
		t.Errorf("a data route: %d, Retry-After %q; want 503 with Retry-After", got.status, got.header.Get("Retry-After"))
	}
	w := httptest.NewRecorder()
	h.MetricsHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, path := range []string{pathHealthz, pathReadyz} {
		if strings.Contains(w.Body.String(), `route="`+path+`"`) {
			t.Errorf("the metrics include %s", path)
		}
	}
}

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	for given, keep := range map[string]bool{"abc-123": true, strings.Repeat("x", 128): true, "": false, "two words": false, "ü": false, strings.Repeat("x", 129): false} {
		got := h.call(t, "", "GET", "/healthz", "", "X-Request-Id", given).header.Get("X-Request-Id")
		if (got == given) != keep || got == "" {
			t.Errorf("X-Request-Id %q is answered %q", given, got)
		}
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	h.call(t, h.alice, "DELETE", "/api/memories/one", "")
	h.call(t, h.alice, "DELETE", "/api/memories/two", "")
	h.call(t, h.alice, "PUT", "/nowhere", "")
	h.call(t, "", "GET", "/api/buckets", "")
	w := httptest.NewRecorder()
	h.MetricsHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	text, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`mnemo_http_requests_total{method="DELETE",route="/api/memories/{memoryId}",status="404"} 2`,
		`mnemo_http_requests_total{method="GET",route="/api/buckets",status="401"} 1`,
		`mnemo_http_requests_total{method="unmatched",route="unmatched",status="404"} 1`,
		`mnemo_http_request_duration_seconds_count{method="DELETE",route="/api/memories/{memoryId}"} 2`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
}

// A server that was shut down before Serve does not start.
func TestShutdownBeforeServe(t *testing.T) {
	t.Parallel()
	s := New(Config{})
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(t.Context(), "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
}

func TestBulkDeleteWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	h.ok(t, h.alice, "GET", "/api/buckets", "")
	h.stores.fail(fault.New(fault.Unavailable, "database unavailable"))
	got := h.ok(t, h.alice, "POST", "/api/memories/bulk-delete", `{"memoryIds":["x"]}`)
	if !strings.HasPrefix(got.body, `{"message":"Memories deleted","deletedCount":0,"errors":[{"memoryId":"postgres_bulk","error":"`) {
		t.Errorf("body %s", got.body)
	}
}

// A request that was not finished within its deadline is not an error of what it waited for last: large requests of mem0
// clients ended with "the database is unavailable".
func TestDeadlineIsNotAnErrorOfTheDatabase(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	failed := &fault.Error{Kind: fault.Unavailable, Message: tenant.DatabaseUnavailable}
	const want = "request timed out; try again"
	if got := h.toHTTPError(late, failed).Message; got != want {
		t.Errorf("after the deadline: %q, want %q", got, want)
	}
	if got := h.toHTTPError(t.Context(), failed).Message; got != tenant.DatabaseUnavailable {
		t.Errorf("before the deadline: %q, want %q", got, tenant.DatabaseUnavailable)
	}
}
