package apiserver

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// varying are the parts of a response that differ between two empty accounts.
var varying = regexp.MustCompile(`"processingTime":("[^"]*"|[0-9.e+-]+)|"(id|bucketId)":("[0-9]+"|[0-9]+)|"(exportedAt|createdAt|at)": ?"[^"]*"|[0-9a-f]{64}|"buckets.jsonl": [01]|{"id":[0-9]+,"name":"General".*\n`)

// actsForUsers: an application key acts for its users. A read for an unknown one behaves like
// an empty account and creates nothing; the quota counts them; the audit log says which
// application acted.
func (h *testServer) actsForUsers(t *testing.T, s realStores) {
	t.Helper()
	key, id := s.application(t, "apps"), s.spec("apps").ID
	usage := func() int64 {
		t.Helper()
		used, err := s.db.Usage(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return used.Users
	}
	// An account that exists and is empty.
	memory := h.call(t, key, "POST", "/api/memory", `{"text":"2025-05-09 likes tea"}`, headerUser, "first").json(t)["memoryId"].(string)
	if got := h.call(t, key, "DELETE", "/api/memories/"+memory, "", headerUser, "first"); got.status != 200 {
		t.Fatalf("delete: %d %s", got.status, got.body)
	}
	before := usage()
	for _, r := range requests {
		op := h.operation(r.method, r.path)
		required := requiredScopes[op.Method+" "+op.Path]
		if required != tenant.AccessRead && r.method != "DELETE" || required == tenant.AccessAdmin {
			continue
		}
		// The first bucket of the database may be that of the empty account.
		path := strings.Replace(r.path, "/api/buckets/1", "/api/buckets/999999999", 1)
		want := h.call(t, key, r.method, path, r.body, headerUser, "first")
		got := h.call(t, key, r.method, path, r.body, headerUser, "unknown")
		a, b := varying.ReplaceAllString(want.text(t), ""), varying.ReplaceAllString(got.text(t), "")
		if r.path == "/api/audit" {
			a, b = "", "" // the empty account has a history
		}
		if got.status != want.status || got.status >= 500 || a != b {
			t.Errorf("%s %s for an unknown user: %d %s\nbut for an empty account: %d %s", r.method, r.path, got.status, b, want.status, a)
		}
	}
	if now := usage(); now != before {
		t.Errorf("reads created %d users", now-before)
	}
	h.createsUsersAfterChecks(t, key, usage)
	h.auditsApplications(t, s, key)
	h.limitsUsers(t, s, key)
}

// createsUsersAfterChecks: a request that is refused before the service receives it creates nobody. One
// that the service or the store refuses leaves an empty user, whom a retry uses (ADR 22).
func (h *testServer) createsUsersAfterChecks(t *testing.T, key string, usage func() int64) {
	t.Helper()
	before := usage()
	for reason, r := range map[string]struct {
		path, body, user string
		headers          []string
		status           int
	}{
		"JSON is invalid":        {"/api/memory", `{"text":`, "refused", nil, 400},
		"a type is wrong":        {"/api/memory", `{"text":7}`, "refused", nil, 400},
		"not JSON":               {"/api/memory", `text`, "refused", []string{"Content-Type", "text/plain"}, 415},
		"the name is invalid":    {"/api/memory", `{"text":"a"}`, "..", nil, 400},
		"the route is missing":   {"/api/memory/x", `{"text":"a"}`, "refused", nil, 404},
		"the scope is missing":   {"/api/users", "", "refused", nil, 403},
		"the token is not a key": {"/api/memory", `{"text":"a"}`, "refused", []string{"Authorization", "Bearer mn_x"}, 401},
	} {
		method := "POST"
		if r.path == "/api/users" {
			method = "GET"
		}
		got := h.call(t, key, method, r.path, r.body, append([]string{headerUser, r.user}, r.headers...)...)
		if got.status != r.status {
			t.Errorf("%s: %d %s, want status %d", reason, got.status, got.body, r.status)
		}
		if now := usage(); now != before {
			t.Errorf("%s: %d users were created", reason, now-before)
		}
	}
	for _, body := range []string{`{"text":" "}`, `{"text":"a","bucketId":987654321}`} {
		if got := h.call(t, key, "POST", "/api/memory", body, headerUser, "refused"); got.status < 400 || got.status >= 500 {
			t.Errorf("%s: %d %s, want a refusal", body, got.status, got.body)
		}
		if now := usage(); now != before+1 {
			t.Errorf("requests that the service refused for one user created %d users, want 1", now-before)
		}
	}
}

// text is the body, with the files of an export.
func (a answer) text(t *testing.T) string {
	t.Helper()
	if a.header.Get("Content-Type") == "application/zip" {
		return string(unzipped(t, []byte(a.body)))
	}
	return a.body
}

func (h *testServer) auditsApplications(t *testing.T, s realStores, key string) {
	t.Helper()
	if got := h.call(t, key, "POST", "/api/memory", `{"text":"2025-05-09 likes coffee"}`, headerUser, "audited"); got.status != 200 {
		t.Fatalf("store: %d %s", got.status, got.body)
	}
	who, err := s.db.Identify(t.Context(), tenant.HashSecret(key))
	if err != nil {
		t.Fatal(err)
	}
	acting, err := s.db.ActFor(t.Context(), who, "audited", false)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.db.SealRecords(t.Context(), who.Tenant, true); err != nil {
		t.Fatal(err)
	}
	records, err := s.db.UserRecords(t.Context(), acting.Scope, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var verbs []audit.Verb
	for _, r := range records {
		verbs = append(verbs, r.Verb)
		if r.Actor != "application" || r.Via != "key" || r.App != "web" || r.Fingerprint != tenant.HashSecret(key).Fingerprint() || r.User == "" {
			t.Errorf("record %+v, want one by application web with its key", r)
		}
	}
	if !slices.Equal(verbs, []audit.Verb{audit.UserCreate, audit.MemoryCreate}) {
		t.Errorf("records %v, want the user and the memory", verbs)
	}
}

// limitsUsers: the quota of users refuses the first write for one more user, and the
// revocation of the key is effective at once.
func (h *testServer) limitsUsers(t *testing.T, s realStores, key string) {
	t.Helper()
	var last answer
	for i := range 20 { // the quota is 10, of which 4 are listed
		if last = h.call(t, key, "POST", "/api/memory", `{"text":"a"}`, headerUser, strings.Repeat("u", i+1)); last.status != 200 {
			break
		}
	}
	if last.status != 403 || !strings.Contains(last.body, `"code":"quota_exceeded"`) || !strings.Contains(last.body, "user quota exceeded (limit 10)") {
		t.Errorf("over the quota of users: %d %s", last.status, last.body)
	}
	if err := s.db.RevokeOlder(t.Context(), s.spec("apps").ID, tenant.KeyHolder("web"), time.Now().UnixNano(), 0); err != nil {
		t.Fatal(err)
	}
	h.Cache.Drop(tenant.HashSecret(key)) // as the listener of the process does
	if got := h.call(t, key, "GET", "/api/buckets", "", headerUser, "first"); got.status != 401 {
		t.Errorf("a revoked key: %d %s", got.status, got.body)
	}
}
