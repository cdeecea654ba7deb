package apiserver

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// userDoor is a part of a request that names a user to act for.
type userDoor struct {
	method, path, body string // the user in place of USER, encoded
	header             bool   // the user is in the header
	token              bool   // with the token of a user instead of an application key
}

var userDoors = map[string]userDoor{
	"header":                    {method: "POST", path: "/api/memory", body: `{"text":"a"}`, header: true},
	"header of a read":          {method: "GET", path: "/api/memory", header: true},
	"header of MCP":             {method: "POST", path: pathMCP, body: `{"jsonrpc":"2.0","id":1,"method":"ping"}`, header: true},
	"header of mem0":            {method: "POST", path: "/mem0/v3/memories/add/", body: `{"messages":"a"}`, header: true},
	"mem0 add":                  {method: "POST", path: "/mem0/v3/memories/add/", body: `{"messages":"a","user_id":USER}`},
	"mem0 add, former":          {method: "POST", path: "/mem0/v1/memories/", body: `{"messages":"a","user_id":USER}`},
	"mem0 add, filters":         {method: "POST", path: "/mem0/v3/memories/add/", body: `{"messages":"a","filters":{"user_id":USER}}`},
	"mem0 search":               {method: "POST", path: "/mem0/v2/memories/search/", body: `{"query":"a","user_id":USER}`},
	"mem0 search, filters":      {method: "POST", path: "/mem0/v3/memories/search/", body: `{"query":"a","filters":{"user_id":USER}}`},
	"mem0 search, AND":          {method: "POST", path: "/mem0/v3/memories/search/", body: `{"query":"a","filters":{"AND":[{"user_id":{"in":[USER]}}]}}`},
	"mem0 list":                 {method: "POST", path: "/mem0/v3/memories/", body: `{"filters":{"user_id":USER}}`},
	"mem0 list, query":          {method: "GET", path: "/mem0/v1/memories/?user_id=USER"},
	"mem0 deletion, query":      {method: "DELETE", path: "/mem0/v1/memories/?user_id=USER"},
	"mem0 entity":               {method: "DELETE", path: "/mem0/v2/entities/user/USER/"},
	"mem0 add, user":            {method: "POST", path: "/mem0/v3/memories/add/", body: `{"messages":"a","user_id":USER}`, token: true},
	"mem0 add, user, former":    {method: "POST", path: "/mem0/v1/memories/", body: `{"messages":"a","user_id":USER}`, token: true},
	"mem0 add, user in filters": {method: "POST", path: "/mem0/v3/memories/add/", body: `{"messages":"a","filters":{"user_id":USER}}`, token: true},
}

// call sends the request of a door with the user's name.
func (d userDoor) call(t *testing.T, h *testServer, key, name string) answer {
	t.Helper()
	encoded, err := json.Marshal(name)
	if err != nil {
		t.Fatal(err)
	}
	escaped := strings.NewReplacer(".", "%2E", "*", "%2A", "+", "%2B").Replace(url.PathEscape(name))
	path, body := strings.ReplaceAll(d.path, "USER", escaped), strings.ReplaceAll(d.body, "USER", string(encoded))
	switch {
	case d.token:
		return h.call(t, h.alice, d.method, path, body)
	case d.header:
		return h.call(t, key, d.method, path, body, headerUser, name)
	}
	return h.call(t, key, d.method, path, body)
}

// A name of a user is valid in every request or in none, so that a user whom one request creates can be named in the others.
func TestUserNamesAreEqualInEveryRequest(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	key := h.application(t, 50, tenant.AccessRead|tenant.AccessWrite|tenant.AccessAdmin)
	valid := []string{"col 1", "a*", "**", "ann@example.com", "org/42", "Ünï 株", "a+b", "%2F", "...", strings.Repeat("x", 256)}
	invalid := []string{
		" col1", "col1 ", "\u00a0col1", "col1\u3000", "\u200b", "\ufeff\u2800", "*", ".", "..", "a\tb", "a\x00", "a\u0085", "\x7f",
		strings.Repeat("x", 257),
	}
	for door, d := range userDoors {
		for _, name := range slices.Concat(valid, invalid) {
			trimmed := d.header && strings.Trim(name, " ") != name // the header cannot contain it
			if trimmed || d.header && strings.ContainsAny(name, "\x00\x7f") {
				continue
			}
			want := http.StatusOK
			if slices.Contains(invalid, name) {
				want = http.StatusBadRequest
			}
			if got := d.call(t, h, key, name); got.status != want {
				t.Errorf("%s, user %q: %d %s, want %d", door, name, got.status, got.body, want)
			}
		}
	}
}

// A user whose name was permitted before can be read and erased, although no request can act for the user.
func TestUsersWithFormerNamesCanBeErased(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	key := h.application(t, 50, tenant.AccessAdmin)
	for _, name := range []string{" col1", "col1 ", "*", ".", "..", "\u200b"} {
		h.stores.mu.Lock()
		h.stores.acting = append(h.stores.acting, name)
		h.stores.mu.Unlock()
		path := "/api/users/" + strings.ReplaceAll(url.PathEscape(name), ".", "%2E")
		if got := h.call(t, key, "GET", path, ""); got.status != http.StatusOK {
			t.Errorf("GET %q: %d %s", name, got.status, got.body)
		}
		if got := h.call(t, key, "DELETE", path, ""); got.status != http.StatusAccepted {
			t.Errorf("DELETE %q: %d %s", name, got.status, got.body)
		}
	}
}
