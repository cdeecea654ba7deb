package apiserver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// userToken creates a token of alice with the scopes.
func (h *testServer) userToken(t *testing.T, name string, access tenant.Access) string {
	t.Helper()
	got := h.ok(t, h.alice, "POST", "/api/tokens", fmt.Sprintf(`{"name":%q,"scopes":["%s"]}`, name, strings.Join(access.Names(), `","`)))
	token, _ := got.json(t)["token"].(string)
	if !tenant.IsToken(token) {
		t.Fatalf("token = %q", token)
	}
	return token
}

// Each route accepts tokens of users with its scope only, except those that are for
// application keys.
func TestScopeOfEveryRouteForTokens(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	tokens := map[tenant.Access]string{}
	for _, scope := range []tenant.Access{tenant.AccessRead, tenant.AccessWrite, tenant.AccessTokens} {
		tokens[scope] = h.userToken(t, scope.Names()[0], scope)
	}
	for _, r := range requests {
		op := h.operation(r.method, r.path)
		required := requiredScopes[op.Method+" "+op.Path]
		for scope, token := range tokens {
			got := h.call(t, token, r.method, r.path, strings.Replace(r.body, `{"name":"a"}`, `{"name":"a","scopes":["admin"]}`, 1))
			refused := got.status == 403 && strings.Contains(got.body, `"code":"insufficient_scope"`) && strings.Contains(got.body, "scope "+required.Names()[0])
			if refused == (scope == required) {
				t.Errorf("%s %s with scope %v: %d %s, want scope %v", r.method, r.path, scope.Names(), got.status, got.body, required.Names())
			}
		}
	}
	for tool, required := range requiredScopes {
		name, ok := strings.CutPrefix(tool, "tool ")
		if !ok {
			continue
		}
		for scope, token := range tokens {
			got := h.call(t, token, "POST", pathMCP, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+name+`","arguments":{}}}`)
			if refused := strings.Contains(got.body, "does not have the scope"); refused == (scope == required) {
				t.Errorf("%s with scope %v: %s", tool, scope.Names(), got.body)
			}
		}
	}
}

// A token creates no token with scopes that it lacks.
func TestTokenCreatesNoScope(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	for i, tc := range []struct {
		of    tenant.Access
		asks  string
		wants int
	}{
		{tenant.AccessTokens | tenant.AccessRead, `["read"]`, 200},
		{tenant.AccessTokens | tenant.AccessRead, `["admin","read"]`, 200},
		{tenant.AccessTokens | tenant.AccessRead, `["write"]`, 403},
		{tenant.AccessTokens | tenant.AccessRead, `["read","write"]`, 403},
		{tenant.AccessTokens, `["read"]`, 403},
		{tenant.AccessRead | tenant.AccessWrite, `["read"]`, 403},
		{tenant.FullAccess, `["read","write","admin"]`, 200},
	} {
		token := h.userToken(t, fmt.Sprint("creator ", i), tc.of)
		got := h.call(t, token, "POST", "/api/tokens", fmt.Sprintf(`{"name":"made %d","scopes":%s}`, i, tc.asks))
		if got.status != tc.wants || tc.wants == 403 && !strings.Contains(got.body, "insufficient_scope") {
			t.Errorf("a token with %v creates %s: %d %s, want %d", tc.of.Names(), tc.asks, got.status, got.body, tc.wants)
		}
	}
}

func TestCreateTokenRefusals(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	h.userToken(t, "Laptop", tenant.AccessRead)
	for body, want := range map[string]string{
		`{}`:              "name is required",
		`{"name":" "}`:    "name is required",
		`{"name":"a\nb"}`: "name must not contain line breaks",
		`{"name":"` + strings.Repeat("é", 101) + `"}`: "name must be at most 100 characters, not 101",
		`{"name":"a","scopes":[]}`:                    "scopes must be one or more of read, write and admin",
		`{"name":"a","scopes":["read","tokens"]}`:     "scopes[1] must be read, write or admin",
		`{"name":"a","scopes":"read"}`:                "scopes must be",
		`{"name":"a","expiresAt":""}`:                 "expiresAt must be a time in the future, or absent",
		`{"name":"\n1"}`:                              "name must not contain line breaks",
		`{"name":"a","expiresAt":"soon"}`:             "expiresAt must be an ISO 8601",
		`{"name":"a","expiresAt":"2020-01-01"}`:       "expiresAt must be in the future",
	} {
		if got := h.call(t, h.alice, "POST", "/api/tokens", body); got.status != 400 || !strings.Contains(got.body, want) {
			t.Errorf("POST /api/tokens %.60s: %d %s, want %q", body, got.status, got.body, want)
		}
	}
	if got := h.call(t, h.alice, "POST", "/api/tokens", `{"name":"LAPTOP"}`); got.status != 409 {
		t.Errorf("a name that is taken: %d %s", got.status, got.body)
	}
	if got := h.ok(t, h.bob, "POST", "/api/tokens", `{"name":"Laptop"}`); got.header.Get("Cache-Control") != "no-store" {
		t.Errorf("Cache-Control = %q", got.header.Get("Cache-Control"))
	}
	for i := range tenant.MaxUserTokens - 1 {
		h.userToken(t, fmt.Sprint("n", i), tenant.AccessRead)
	}
	got := h.call(t, h.alice, "POST", "/api/tokens", `{"name":"one more"}`)
	if got.status != 403 || got.json(t)["code"] != "quota_exceeded" || !strings.Contains(got.body, "limit 50") {
		t.Errorf("above the limit: %d %s", got.status, got.body)
	}
}

// Users see and revoke their own tokens only, and no list contains a token.
func TestTokensOfAnotherUser(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	token := h.userToken(t, "Laptop", tenant.AccessRead)
	list := h.ok(t, h.alice, "GET", "/api/tokens", "")
	if strings.Contains(list.body, token) || strings.Contains(list.body, token[3:]) {
		t.Error("the list contains the token")
	}
	id := list.json(t)["tokens"].([]any)[0].(map[string]any)["id"].(string)
	want := h.call(t, h.bob, "DELETE", "/api/tokens/unknown", "")
	for name, other := range map[string]string{"bob": h.bob, "carol": h.carol} {
		if got := h.ok(t, other, "GET", "/api/tokens", ""); strings.TrimSpace(got.body) != `{"tokens":[]}` {
			t.Errorf("%s sees %s", name, got.body)
		}
		if got := h.call(t, other, "DELETE", "/api/tokens/"+id, ""); got.status != 404 || cmp.Diff(want.body, got.body) != "" {
			t.Errorf("%s revokes: %d %s, want %d %s", name, got.status, got.body, want.status, want.body)
		}
	}
	h.ok(t, h.alice, "DELETE", "/api/tokens/"+id, "")
	if got := h.call(t, h.alice, "DELETE", "/api/tokens/"+id, ""); got.status != 404 {
		t.Errorf("a second revocation: %d %s", got.status, got.body)
	}
}
