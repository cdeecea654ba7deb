package apiserver

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// application returns the key of an application of tenant one with the scopes.
func (h *testServer) application(t *testing.T, id tenant.UserID, access tenant.Access, change ...func(*tenant.Application)) string {
	t.Helper()
	app := &tenant.Application{ID: id, Name: "web", RequestsPerMinute: tenant.NoLimit}
	for _, f := range change {
		f(app)
	}
	key, err := tenant.NewTokenOf(tenant.KeyToken, 0, seed(id))
	if err != nil {
		t.Fatal(err)
	}
	who := tenant.Identity{Scope: tenant.Scope{Tenant: "one", User: id}, Access: access, Application: app}
	who.Quota.PageTokens, who.Quota.RequestsPerMinute = 25000, 1000000
	who.Actor = tenant.KeyActor(tenant.HashSecret(key), app.Name)
	h.stores.mu.Lock()
	defer h.stores.mu.Unlock()
	h.stores.known[tenant.HashSecret(key)] = who
	return key
}

// requiredScopes are the scopes of all routes and tools. It is spelled out so that no
// change of a default changes what a key may do.
var requiredScopes = map[string]tenant.Access{
	"GET /api/memory": tenant.AccessRead, "GET /api/v2/memory": tenant.AccessRead, "GET /api/memories/{memoryId}": tenant.AccessRead,
	"GET /api/memories/{memoryId}/versions": tenant.AccessRead, "GET /api/buckets": tenant.AccessRead,
	"GET /api/chat-history/conversation": tenant.AccessRead, "GET /api/chat-history/count": tenant.AccessRead, "GET /api/chat-history/chats": tenant.AccessRead,
	"POST /api/chat-history/search": tenant.AccessRead, "POST /api/chat-history/inject": tenant.AccessRead, "POST /api/chat-history/recall": tenant.AccessRead,
	"GET /api/chat-history/imports": tenant.AccessRead, "GET /api/chat-history/imports/{importId}": tenant.AccessRead,
	"GET /api/chat-history/imports/{importId}/events": tenant.AccessRead,
	"POST /api/search": tenant.AccessRead, "GET /api/export": tenant.AccessRead, "GET /api/audit": tenant.AccessRead,

	"POST /api/memory": tenant.AccessWrite, "POST /api/v2/memory": tenant.AccessWrite, "POST /api/v2/memory/update": tenant.AccessWrite,
	"POST /api/memories/{memoryId}/merge": tenant.AccessWrite, "POST /api/memories/{memoryId}/unmerge": tenant.AccessWrite,
	"DELETE /api/memories/{memoryId}": tenant.AccessWrite, "POST /api/memories/bulk-delete": tenant.AccessWrite,
	"POST /api/buckets": tenant.AccessWrite, "PATCH /api/buckets/{bucketId}": tenant.AccessWrite, "DELETE /api/buckets/{bucketId}": tenant.AccessWrite,
	"PATCH /api/chat-history/chats": tenant.AccessWrite, "DELETE /api/chat-history/chats": tenant.AccessWrite,
	"POST /api/chat-history/ingest/custom-online": tenant.AccessWrite, "POST /api/chat-history/import": tenant.AccessWrite,
	"DELETE /api/account": tenant.AccessWrite,

	"GET /api/tokens": tenant.AccessTokens, "POST /api/tokens": tenant.AccessTokens, "DELETE /api/tokens/{tokenId}": tenant.AccessTokens,

	"GET /api/users": tenant.AccessAdmin, "GET /api/users/{user}": tenant.AccessAdmin, "DELETE /api/users/{user}": tenant.AccessAdmin,

	"tool store_memory": tenant.AccessWrite, "tool create_bucket": tenant.AccessWrite, "tool update_or_move_memories": tenant.AccessWrite,
	"tool search_memories": tenant.AccessRead, "tool get_memories_and_buckets": tenant.AccessRead, "tool list_buckets": tenant.AccessRead,
	"tool recall_chat_history": tenant.AccessRead, "tool search_chat_history": tenant.AccessRead, "tool get_full_conversation": tenant.AccessRead,
}

var allScopes = []tenant.Access{tenant.AccessRead, tenant.AccessWrite, tenant.AccessAdmin}

// Each route accepts keys with its scope only, and refuses others before it reads a body.
func TestScopeOfEveryRoute(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	seen := map[string]bool{}
	for _, r := range requests {
		op := h.operation(r.method, r.path)
		route := op.Method + " " + op.Path
		required, known := requiredScopes[route]
		if !known {
			t.Errorf("%s has no entry in requiredScopes", route)
		}
		seen[route] = true
		for i, scope := range allScopes {
			got := h.call(t, h.application(t, tenant.UserID(50+i), scope), r.method, r.path, r.body, headerUser, "customer-1")
			refused := got.status == 403 && strings.Contains(got.body, `"code":"insufficient_scope"`) && strings.Contains(got.body, "scope "+required.Names()[0])
			if refused == (scope == required) {
				t.Errorf("%s with scope %v: %d %s, want scope %v", route, scope.Names(), got.status, got.body, required.Names())
			}
		}
	}
	for route := range requiredScopes {
		if !seen[route] && !strings.HasPrefix(route, "tool ") {
			t.Errorf("requiredScopes has %s, which does not exist", route)
		}
	}
}

func TestScopeOfEveryTool(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	list, err := h.assistant(t, h.alice, protocols[0]).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		required, known := requiredScopes["tool "+tool.Name]
		if !known {
			t.Errorf("tool %s has no entry in requiredScopes", tool.Name)
		}
		for i, scope := range allScopes {
			key := h.application(t, tenant.UserID(60+i), scope)
			got := h.call(t, key, "POST", pathMCP, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool.Name+`","arguments":{}}}`, headerUser, "customer-1")
			if refused := strings.Contains(got.body, "does not have the scope"); refused == (scope == required) {
				t.Errorf("tool %s with scope %v: %s", tool.Name, scope.Names(), got.body)
			}
		}
	}
	key := h.application(t, 70, tenant.AccessWrite)
	if got := h.call(t, key, "POST", pathMCP, `{"jsonrpc":"2.0","id":1,"method":"resources/list"}`, headerUser, "c"); !strings.Contains(got.body, "scope read") {
		t.Errorf("resources without the scope read: %s", got.body)
	}
	key = h.application(t, 71, tenant.AccessRead)
	if got := h.call(t, key, "POST", pathMCP, `{"jsonrpc":"2.0","id":1,"method":"resources/list"}`); !strings.Contains(got.body, headerUser+" is required") {
		t.Errorf("resources without a user: %s", got.body)
	}
}

// The header is required with an application key and refused with a user's token.
func TestUserHeader(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	key := h.application(t, 50, tenant.AccessRead|tenant.AccessWrite|tenant.AccessAdmin)
	for _, r := range requests {
		admin := strings.HasPrefix(r.path, "/api/users") || strings.HasPrefix(r.path, "/api/tokens")
		got := h.call(t, key, r.method, r.path, r.body)
		if missing := strings.Contains(got.body, `"code":"user_required"`); missing == admin || missing && (got.status != 400 || !strings.Contains(got.body, headerUser)) {
			t.Errorf("%s %s without the header: %d %s", r.method, r.path, got.status, got.body)
		}
		if got := h.call(t, h.alice, r.method, r.path, r.body, headerUser, "alice"); !admin && (got.status != 400 || !strings.Contains(got.body, "only be sent with an application key")) {
			t.Errorf("%s %s with a user's token and the header: %d %s", r.method, r.path, got.status, got.body)
		}
	}
	for name, says := range map[string]string{
		strings.Repeat("x", 256): "", "Ünï cödé/株式会社": "", "auth0|5f7c": "", "a+b@x.test": "", "%2F": "",
		strings.Repeat("x", 257): "at most 256 bytes", "a\tb": "control characters", "a\u0085": "control characters", "\xff": "UTF-8", "..": "URL",
	} {
		got := h.call(t, key, "GET", "/api/buckets", "", headerUser, name)
		if says == "" && got.status != 200 || says != "" && (got.status != 400 || !strings.Contains(got.body, headerUser+" must") || !strings.Contains(got.body, says)) {
			t.Errorf("user %q: %d %s, want %q", name, got.status, got.body, says)
		}
	}
	twice := h.raw(t, "GET /api/buckets HTTP/1.1\r\nHost: x\r\nX-Mnemo-User: a\r\nx-mnemo-user: b\r\nAuthorization: Bearer "+key+"\r\n\r\n")
	if !strings.HasPrefix(twice, "HTTP/1.1 400") {
		t.Errorf("two users in one request: %s", twice)
	}
}

// A read creates no user, and nor does a deletion or a refused request. A write does.
func TestFirstWriteCreatesUser(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	key := h.application(t, 50, tenant.AccessRead|tenant.AccessWrite)
	for i, r := range requests {
		op := h.operation(r.method, r.path)
		required := requiredScopes[op.Method+" "+op.Path]
		if required == tenant.AccessAdmin || r.path == "/api/chat-history/import" {
			continue
		}
		name := strings.Repeat("u", i+1)
		got := h.call(t, key, r.method, r.path, r.body, headerUser, name)
		h.stores.mu.Lock()
		created := slices.Contains(h.stores.acting, name)
		h.stores.mu.Unlock()
		if created != (required == tenant.AccessWrite && r.method != http.MethodDelete) {
			t.Errorf("%s %s: user created: %v (%d %s)", r.method, r.path, created, got.status, got.body)
		}
	}
	h.call(t, key, "POST", "/api/memory", `{`, headerUser, "bad")
	if slices.Contains(h.stores.acting, "bad") {
		t.Error("a request that is not JSON created a user")
	}
}

func TestUsersOfApplications(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	key := h.application(t, 50, tenant.AccessWrite|tenant.AccessAdmin)
	names := []string{"a+b@x.test", "org/42", "%2F", "ü 株", "auth0|5f7c", "x?y#z"}
	slices.Sort(names)
	for _, name := range names {
		if got := h.call(t, key, "POST", "/api/memory", `{"text":"a"}`, headerUser, name); got.status != 200 {
			t.Fatalf("store for %q: %d %s", name, got.status, got.body)
		}
	}
	var listed []string
	for after, pages := "", 0; pages < 10; pages++ {
		got := h.ok(t, key, "GET", "/api/users?count=4&after="+url.QueryEscape(after), "").json(t)
		for _, u := range got["users"].([]any) {
			listed = append(listed, u.(map[string]any)["user"].(string))
		}
		if got["next"] == nil {
			break
		}
		after = got["next"].(string)
	}
	if diff := cmp.Diff(names, listed); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
	for _, name := range names {
		path := "/api/users/" + url.PathEscape(name)
		if got := h.ok(t, key, "GET", path, "").json(t); got["user"] != name || got["memories"] != 2.0 {
			t.Errorf("GET %s: %v", path, got)
		}
		if got := h.call(t, key, "DELETE", path, ""); got.status != 202 {
			t.Errorf("DELETE %s: %d %s", path, got.status, got.body)
		}
		if got := h.call(t, key, "GET", path, ""); got.status != 404 {
			t.Errorf("GET %s of an erased user: %d %s", path, got.status, got.body)
		}
		if got := h.call(t, key, "DELETE", path, ""); got.status != 404 {
			t.Errorf("DELETE %s of an erased user: %d %s", path, got.status, got.body)
		}
	}
	for _, path := range []string{"/api/users?count=0", "/api/users?after=%00", "/api/users/%FF"} {
		if got := h.call(t, key, "GET", path, ""); got.status != 400 {
			t.Errorf("GET %s: %d %s", path, got.status, got.body)
		}
	}
	if got := h.call(t, key, "DELETE", "/api/users/%00", ""); got.status != 400 {
		t.Errorf("DELETE of an invalid name: %d %s", got.status, got.body)
	}
	if got := h.call(t, key, "GET", "/api/users/a/b", ""); got.status != 404 {
		t.Errorf("a slash that is not encoded: %d %s", got.status, got.body)
	}
}

// An application has a rate of its own in addition to the tenant's.
func TestApplicationRate(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	h.limiter.Now = func() time.Time { return noon }
	key := h.application(t, 50, tenant.AccessRead, func(a *tenant.Application) { a.RequestsPerMinute = 2 })
	other := h.application(t, 51, tenant.AccessRead)
	for i, want := range []int{200, 200, 429} {
		got := h.call(t, key, "GET", "/api/buckets", "", headerUser, "c")
		if got.status != want || got.header.Get("RateLimit-Limit") != "2" {
			t.Errorf("request %d: %d, limit %s, want %d", i, got.status, got.header.Get("RateLimit-Limit"), want)
		}
	}
	if got := h.call(t, other, "GET", "/api/buckets", "", headerUser, "c"); got.status != 200 || got.header.Get("RateLimit-Limit") != "1000000" {
		t.Errorf("another application: %d, limit %s", got.status, got.header.Get("RateLimit-Limit"))
	}
}

// placedUsers has one user of applications, whose vectors are at a location of their own.
type placedUsers struct {
	fakeUsers
	acting tenant.ActingUser
}

func (p placedUsers) ActFor(context.Context, tenant.Identity, string, bool) (tenant.ActingUser, error) {
	return p.acting, nil
}

// An application acts with the location of its user's vectors, not with that of its key, even if the user is cached.
func TestActForUsesLocationOfUser(t *testing.T) {
	t.Parallel()
	want := tenant.ActingUser{Scope: tenant.Scope{Tenant: "one", User: 9}, Placement: placement.Location{Collection: "next", Partition: "p"}, Generation: 2}
	h := newTestServer(t, func(c *Config) { c.Users = placedUsers{acting: want} })
	key := tenant.Identity{Scope: tenant.Scope{Tenant: "one", User: 8}, Placement: placement.Location{Collection: "current", Partition: "p"}, Generation: 1,
		Application: &tenant.Application{ID: 8, Name: "web"}}
	for range 2 {
		who, err := h.actFor(t.Context(), key, "ada", true)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, tenant.ActingUser{Scope: who.Scope, Placement: who.Placement, Generation: who.Generation}); diff != "" {
			t.Errorf("actFor (-want +got):\n%s", diff)
		}
	}
}
