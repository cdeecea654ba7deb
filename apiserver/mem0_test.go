package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/internal/extract"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// mem0Requests has a valid request of each route of the API of mem0, with its scope, which
// is spelled out so that no change of a default changes what a key may do.
var mem0Requests = []struct {
	method, path, body, route string
	access                    tenant.Access
}{
	{"GET", "/v1/ping/", "", "/v1/ping", tenant.AccessRead},
	{"POST", "/v3/memories/add/", `{"messages":"a","user_id":"customer-1"}`, "/v3/memories/add", tenant.AccessWrite},
	{"POST", "/v1/memories/", `{"messages":[{"role":"user","content":"a"}],"user_id":"customer-1"}`, "/v1/memories", tenant.AccessWrite},
	{"POST", "/v3/memories/search/", `{"query":"a","filters":{"user_id":"customer-1"}}`, "/v3/memories/search", tenant.AccessRead},
	{"POST", "/v2/memories/search/", `{"query":"a","filters":{"user_id":"customer-1"}}`, "/v2/memories/search", tenant.AccessRead},
	{"POST", "/v1/memories/search/", `{"query":"a","user_id":"customer-1"}`, "/v1/memories/search", tenant.AccessRead},
	{"POST", "/v3/memories/", `{"filters":{"user_id":"customer-1"}}`, "/v3/memories", tenant.AccessRead},
	{"POST", "/v2/memories/", `{"filters":{"user_id":"customer-1"}}`, "/v2/memories", tenant.AccessRead},
	{"GET", "/v1/memories/?user_id=customer-1", "", "/v1/memories", tenant.AccessRead},
	{"DELETE", "/v1/memories/?user_id=customer-1", "", "/v1/memories", tenant.AccessWrite},
	{"GET", "/v1/memories/x/", "", "/v1/memories/:memory", tenant.AccessRead},
	{"PUT", "/v1/memories/x/", `{"text":"b"}`, "/v1/memories/:memory", tenant.AccessWrite},
	{"DELETE", "/v1/memories/x/", "", "/v1/memories/:memory", tenant.AccessWrite},
	{"GET", "/v1/memories/x/history/", "", "/v1/memories/:memory/history", tenant.AccessRead},
	{"PUT", "/v1/batch/", `{"memories":[{"memory_id":"x","text":"b"}]}`, "/v1/batch", tenant.AccessWrite},
	{"DELETE", "/v1/batch/", `{"memories":[{"memory_id":"x"}]}`, "/v1/batch", tenant.AccessWrite},
	{"GET", "/v1/event/x/", "", "/v1/event/:event", tenant.AccessRead},
	{"GET", "/v1/entities/", "", "/v1/entities", tenant.AccessRead},
	{"DELETE", "/v1/entities/user/customer-1/", "", "/v1/entities/:type/:name", tenant.AccessWrite},
	{"DELETE", "/v2/entities/user/customer-1/", "", "/v2/entities/:type/:name", tenant.AccessWrite},
}

// Each route of the API of mem0 checks the credential, its scope, the user and the rate
// before it does anything, and reports errors in the form of mem0.
func TestMem0AuthorizationOfEveryRoute(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	seen := map[string]bool{}
	for _, r := range mem0Requests {
		seen[r.method+" "+pathMem0+r.route] = true
		name := r.method + " " + r.path
		for authorization, want := range map[string]int{"": 401, "Token x": 401, "Basic " + h.alice: 401, "Token " + h.alice: 0, "bearer " + h.alice: 0} {
			got := h.call(t, "", r.method, pathMem0+r.path, r.body, "Authorization", authorization)
			if refused := got.status == 401; refused != (want == 401) || refused && !strings.Contains(got.body, `{"detail":"a valid token is required`) {
				t.Errorf("%s with %.10q: %d %s", name, authorization, got.status, got.body)
			}
			if want == 0 && got.header.Get(httpx.HeaderRateLimit) == "" {
				t.Errorf("%s has no headers of the rate", name)
			}
		}
		for i, scope := range allScopes {
			got := h.call(t, h.application(t, tenant.UserID(50+i), scope), r.method, pathMem0+r.path, r.body)
			if refused := got.status == 403 && strings.Contains(got.body, "scope "+r.access.Names()[0]); refused == (scope == r.access) {
				t.Errorf("%s with scope %v: %d %s", name, scope.Names(), got.status, got.body)
			}
		}
		if got := h.call(t, h.alice, r.method, pathMem0+r.path, r.body, headerUser, "alice"); got.status != 400 || !strings.Contains(got.body, "only be sent with an application key") {
			t.Errorf("%s with a user's token and the header: %d %s", name, got.status, got.body)
		}
	}
	for _, r := range h.app.GetRoutes(true) {
		if route := r.Method + " " + r.Path; strings.HasPrefix(r.Path, pathMem0) && r.Method != http.MethodHead && !seen[route] {
			t.Errorf("%s has no entry in mem0Requests", route)
		}
	}
}

var mem0Ids = regexp.MustCompile(`"id":"(m-[0-9]+)"`)

// The forms of requests and responses, with the attributes that mem0's entities become.
func TestMem0Story(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	const out = `{"id":"$m","memory":"I like tea","user_id":"u","agent_id":"a","app_id":"p","run_id":"r","metadata":{"k":1},"categories":null,"created_at":"2025-05-09T12:00:00.123Z","updated_at":"2025-05-09T12:00:00.123Z"}`
	const listed = `{"count":1,"next":null,"previous":null,"results":[` + out + `]}`
	scored := strings.TrimSuffix(out, "}") + `,"score":0.5}`
	all := `"user_id":"u","agent_id":"a","app_id":"p","run_id":"r"`
	memory := ""
	for _, s := range []step{
		{"GET", "/v1/ping", "", `{"status":"ok","org_id":"one","project_id":"one","user_email":null}`},
		{"POST", "/v3/memories/add/", `{"messages":[{"role":"system","content":"Be kind."},{"role":"user","content":"I like tea"},{"role":"assistant","content":null}],` + all + `,"metadata":{"k":1},"infer":false,"output_format":"v1.1"}`,
			`{"results":[{"id":"$m","memory":"I like tea","event":"ADD","data":{"memory":"I like tea"}}]}`},
		{"POST", "/v1/memories/", `{"messages":[{"role":"user","content":[{"type":"text","text":"I like tea"}]}],"filters":{` + all + `},"metadata":{"k":1},"infer":false}`,
			`[{"id":"$m","memory":"I like tea","event":"NONE","data":{"memory":"I like tea"}}]`},
		{"POST", "/v1/memories/", `{"messages":"I like tea",` + all + `,"metadata":{"k":1},"output_format":"v1.1"}`,
			`{"results":[{"id":"$m","memory":"I like tea","event":"NONE","data":{"memory":"I like tea"}}]}`},
		{"GET", "/v1/memories/$m/?source=CLI", "", out},
		{"POST", "/v3/memories/", `{"filters":{"AND":[{"user_id":"u"}]}}`, listed},
		{"POST", "/v3/memories/?page=2&page_size=1", `{}`, `{"count":1,"next":null,"previous":"/mem0/v3/memories/?page=1&page_size=1","results":[]}`},
		{"POST", "/v2/memories/", `{"user_id":"u"}`, `[` + out + `]`},
		{"POST", "/v3/memories/?page=92233720368547760", `{}`, `{"count":1,"next":null,"previous":"/mem0/v3/memories/?page=2147483646&page_size=100","results":[]}`},
		{"POST", "/v2/memories/?page=1&page_size=50", `{"user_id":"u"}`, listed},
		{"GET", "/v1/memories/?user_id=u", "", `[` + out + `]`},
		{"GET", "/v1/memories/?user_id=u&page=1", "", listed},
		{"POST", "/v3/memories/search/", `{"query":"tea","filters":{"user_id":"u"},"top_k":3,"threshold":0.1,"rerank":true}`, `{"results":[` + scored + `]}`},
		{"POST", "/v2/memories/search/", `{"query":"tea","filters":{"user_id":"u"}}`, `[` + scored + `]`},
		{"POST", "/v1/memories/search/", `{"query":"tea","user_id":"u","limit":2,"top_k":null,"output_format":"v1.1"}`, `{"results":[` + scored + `]}`},
		{"PUT", "/v1/memories/$m/", `{"text":"I like tea","metadata":{"k":1}}`, strings.TrimSuffix(out, "}") + `,"text":"I like tea"}`},
		{"GET", "/v1/memories/$m/history/", "", `[{"id":"$m.1","memory_id":"$m","old_memory":null,"new_memory":"I like tea","event":"ADD","user_id":"u","created_at":"2025-05-09T12:00:00.123Z","updated_at":"2025-05-09T12:00:00.123Z"}]`},
		{"PUT", "/v1/batch/", `{"memories":[{"memory_id":"$m","text":"I like tea"}]}`, `{"message":"Successfully updated 1 memories"}`},
		{"GET", "/v1/entities/", "", `{"count":1,"next":null,"previous":null,"results":[{"id":"a","name":"a","type":"agent","total_memories":1,"created_at":"2025-05-09T12:00:00.123Z","updated_at":"2025-05-09T12:00:00.123Z"}]}`},
		{"DELETE", "/v1/batch/", `{"memories":[{"memory_id":"$m"},{"memory_id":"never"}]}`, `{"message":"Successfully deleted 1 memories"}`},
		{"POST", "/v3/memories/add/", `{"messages":"one","agent_id":"a/b"}`, `{"results":[{"id":"$m","memory":"one","event":"ADD","data":{"memory":"one"}}]}`},
		{"DELETE", "/v1/memories/$m/?delete_linked=True", "", `{"message":"Memory deleted successfully!"}`},
		{"POST", "/v3/memories/add/", `{"messages":"two","agent_id":"a/b"}`, `{"results":[{"id":"$m","memory":"two","event":"ADD","data":{"memory":"two"}}]}`},
		{"DELETE", "/v2/entities/agent/a%2Fb/", "", `{"message":"Entity deleted successfully!"}`},
		{"DELETE", "/v1/memories/?user_id=u", "", `{"message":"Memories deleted successfully!"}`},
		{"GET", "/v1/memories/", "", `[]`},
	} {
		got := h.call(t, h.alice, s.method, pathMem0+strings.ReplaceAll(s.path, "$m", memory), strings.ReplaceAll(s.body, "$m", memory))
		if id := mem0Ids.FindStringSubmatch(got.body); id != nil && s.method == "POST" {
			memory = id[1]
		}
		if want := strings.ReplaceAll(s.want, "$m", memory); got.status != 200 || strings.TrimSpace(got.body) != want {
			t.Errorf("%s %s %s: %d\n%s\nwant\n%s", s.method, s.path, s.body, got.status, got.body, want)
		}
	}
}

// A search without the vector index says so, as in the rest of the API.
func TestMem0Degraded(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	for query, want := range map[string]string{"tea": "", "degraded": degradedVector} {
		got := h.call(t, h.alice, "POST", "/mem0/v3/memories/search/", `{"query":"`+query+`"}`)
		if got.status != 200 || got.header.Get(headerDegraded) != want {
			t.Errorf("search for %s: %d, degraded %q, want %q", query, got.status, got.header.Get(headerDegraded), want)
		}
	}
}

// storeLong stores memories of which two fit into the token limit of a listing.
func (h *testServer) storeLong(t *testing.T, count int) {
	t.Helper()
	for i := range count {
		text := fmt.Sprintf("%d ", i) + strings.Repeat("I like tea. ", 2500)
		if got := h.call(t, h.alice, "POST", "/mem0/v3/memories/add/", `{"messages":"`+text+`","user_id":"u","infer":false}`); got.status != 200 {
			t.Fatalf("add: %d %s", got.status, got.body)
		}
	}
}

// A search returns as many memories as the request permits: it has no next page with those beyond the token limit of listings.
func TestMem0SearchBeyondTokenLimit(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	const stored = 6
	h.storeLong(t, stored)
	for _, r := range []struct {
		path, body string
		want       int
	}{
		{"/v3/memories/search/", `{"query":"tea"}`, stored},
		{"/v3/memories/search/", `{"query":"tea","top_k":5}`, 5},
		{"/v2/memories/search/", `{"query":"tea","top_k":1000}`, stored},
		{"/v1/memories/search/", `{"query":"tea","limit":5}`, 5},
	} {
		got := h.call(t, h.alice, "POST", pathMem0+r.path, r.body)
		if n := len(mem0Ids.FindAllString(got.body, -1)); got.status != 200 || n != r.want {
			t.Errorf("%s %s: %d with %d memories, want %d", r.path, r.body, got.status, n, r.want)
		}
	}
}

// A list without pages has no link to the memories beyond the token limit, so that it contains them, as a page does not.
func TestMem0ListBeyondTokenLimit(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	const stored = 6
	h.storeLong(t, stored)
	for _, r := range []struct {
		method, path, body string
		status, want       int
	}{
		{"GET", "/v1/memories/?user_id=u", "", 200, stored},
		{"POST", "/v2/memories/", `{"user_id":"u"}`, 200, stored},
		{"GET", "/v1/memories/?user_id=u&page=1", "", 200, 2},
		{"POST", "/v2/memories/?page=1", `{"user_id":"u"}`, 200, 2},
		{"POST", "/v3/memories/", `{"filters":{"user_id":"u"}}`, 200, 2},
		{"POST", "/v2/memories/?page_size=5", `{"user_id":"u"}`, 400, 0},
	} {
		got := h.call(t, h.alice, r.method, pathMem0+r.path, r.body)
		if n := len(mem0Ids.FindAllString(got.body, -1)); got.status != r.status || n != r.want {
			t.Errorf("%s %s %s: %d with %d memories, want %d with %d", r.method, r.path, r.body, got.status, n, r.status, r.want)
		}
		if r.status == 200 && r.want < stored && got.json(t)["next"] == nil {
			t.Errorf("%s %s has no link to the next page", r.method, r.path)
		}
	}
}

func TestMem0Refusals(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	long := strings.Repeat("x", 32769)
	for _, s := range []struct {
		method, path, body string
		status             int
		detail             string
	}{
		{"POST", "/v3/memories/add/", `{`, 400, "JSON"},
		{"POST", "/v3/memories/add/", `{}`, 400, "messages is required"},
		{"POST", "/v3/memories/add/", `{"messages":[]}`, 400, "at least one non-empty message"},
		{"POST", "/v3/memories/add/", `{"messages":[{"role":"system","content":"a"}]}`, 400, "at least one non-empty message"},
		{"POST", "/v3/memories/add/", `{"messages":[1]}`, 400, "messages[0] must be an object, not a number"},
		{"POST", "/v3/memories/add/", `{"messages":[{"content":[{"type":"image_url"}]}]}`, 400, "messages[0].content[0].type must be text"},
		{"POST", "/v3/memories/add/", `{"messages":[{"content":1}]}`, 400, "messages[0].content must be a string"},
		{"POST", "/v3/memories/add/", `{"messages":[{"role":"system","content":"a"},{"content":"` + long + `"}]}`, 400, "messages[1].content must be at most 32768 bytes"},
		{"POST", "/v3/memories/add/", `{"messages":[` + strings.Repeat(`{"content":"a"},`, 100) + `{}]}`, 400, "at most 100 messages, not 101"},
		{"POST", "/v3/memories/add/", `{"messages":"a","metadata":{"user_id":"x"}}`, 400, "metadata must not contain user_id"},
		{"POST", "/v3/memories/add/", `{"messages":"a","metadata":[]}`, 400, "metadata must be a JSON object"},
		{"POST", "/v3/memories/add/", `{"messages":"a","agent_id":"` + long + `"}`, 400, "agent_id must be at most 256 bytes"},
		{"POST", "/v3/memories/add/", `{"messages":"a","user_id":5}`, 400, "user_id must be a string"},
		{"POST", "/v3/memories/add/", `{"messages":"a","expiration_date":"2030-01-01"}`, 400, "expiration_date is not supported"},
		{"POST", "/v3/memories/add/", `{"messages":"a","timestamp":1}`, 400, "timestamp is not supported"},
		{"POST", "/v3/memories/search/", `{"query":" "}`, 400, "query is required"},
		{"POST", "/v3/memories/search/", `{"query":"a","top_k":-1}`, 400, "top_k must be at least 1, not -1"},
		{"POST", "/v3/memories/search/", `{"query":"a","top_k":0}`, 400, "top_k must be at least 1, not 0"},
		{"POST", "/v1/memories/search/", `{"query":"a","limit":0}`, 400, "limit must be at least 1, not 0"},
		{"POST", "/v3/memories/search/", `{"query":"a","threshold":2}`, 400, "threshold must be"},
		{"POST", "/v3/memories/search/", `{"query":"a","filters":[]}`, 400, "filters must be a JSON object"},
		{"POST", "/v3/memories/search/", `{"query":"a","latest_only":true}`, 400, "latest_only is not supported"},
		{"POST", "/v3/memories/", `{"filters":[]}`, 400, "filters must be a JSON object"},
		{"POST", "/v3/memories/", `{"start_date":"x","end_date":"y"}`, 400, "start_date must be an RFC 3339 time or a date, such as 2025-05-09T14:30:00Z or 2025-05-09; end_date must be"},
		{"GET", "/v1/memories/?start_date=x", "", 400, "start_date must be an RFC 3339 time"},
		{"POST", "/v3/memories/", `{"filters":{"created_at":{"gte":"x"}}}`, 400, "filters.created_at.gte must be an RFC 3339 time"},
		{"POST", "/v3/memories/", `{"agent_id":"\u0000"}`, 400, "agent_id must not contain the character U+0000"},
		{"GET", "/v1/memories/?app_id=" + long[:8192], "", 400, "app_id must be at most 8192 bytes"},
		{"POST", "/v3/memories/search/", `{"query":"a","metadata":{"k":[]}}`, 400, "metadata.k must be a string"},
		{"POST", "/v3/memories/?page=0&page_size=x", `{}`, 400, "page_size must be an integer of at least 1; page must be an integer of at least 1"},
		{"GET", "/v1/memories/never/", "", 404, "memory not found"},
		{"PUT", "/v1/memories/never/", `{"text":"a"}`, 404, "memory not found"},
		{"DELETE", "/v1/memories/never/", "", 404, "memory not found"},
		{"GET", "/v1/memories/never/history/", "", 404, "memory not found"},
		{"DELETE", "/v1/memories/", "", 400, "one of user_id, agent_id, app_id and run_id is required"},
		{"GET", "/v1/memories/?user_id=%zz", "", 400, "must be percent-encoded"},
		{"PUT", "/v1/batch/", `{"memories":[]}`, 400, "1 to 1000 memories, not 0"},
		{"PUT", "/v1/batch/", `{"memories":[{"memory_id":"x","text":"a"}]}`, 404, "1 of the memories were not found; nothing was changed"},
		{"PUT", "/v1/batch/", `{"memories":[{"memory_id":"x"},{"memory_id":"x"}]}`, 400, "memories[1].memory_id"},
		{"DELETE", "/v2/entities/team/x/", "", 400, "must be user, agent, app or run"},
		{"DELETE", "/v2/entities/agent/%00/", "", 400, "agent_id must not contain"},
		{"DELETE", "/v2/entities/user/*/", "", 400, "not be *"},
		{"POST", "/v1/exports/", `{}`, 404, "this route of the mem0 API is not supported"},
		{"PATCH", "/v1/ping/", "", 405, "method not allowed"},
		{"POST", "/v3/memories/add/", `"` + strings.Repeat("x", 1<<20) + `"`, 413, "at most 1048576 bytes"},
	} {
		got := h.call(t, h.alice, s.method, pathMem0+s.path, s.body)
		detail, _ := got.json(t)["detail"].(string)
		if got.status != s.status || !strings.Contains(detail, s.detail) || strings.Contains(got.body, `"error"`) {
			t.Errorf("%s %s %.80s: %d %s, want %d %q", s.method, s.path, s.body, got.status, got.body, s.status, s.detail)
		}
	}
	h.stores.fail(fault.New(fault.Unavailable, "the database is unavailable"))
	if got := h.call(t, h.alice, "POST", "/mem0/v3/memories/", `{}`); got.status != 503 || got.header.Get("Retry-After") == "" || !strings.Contains(got.body, `{"detail":"the database is unavailable","code":"unavailable"`) {
		t.Errorf("without a database: %d %s", got.status, got.body)
	}
}

// A batch with an invalid change changes nothing, including a change that is invalid only with the keys of the memory.
func TestMem0BatchIsAtomic(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	var ids []string
	for _, text := range []string{"first", "second"} {
		added := h.call(t, h.alice, "POST", "/mem0/v3/memories/add/", `{"messages":"`+text+`","user_id":"ann"}`)
		ids = append(ids, mem0Ids.FindStringSubmatch(added.body)[1])
	}
	for change, want := range map[string]string{
		`"text":" "`:                 "memories[1]: text is required",
		`"metadata":{"user_id":"x"}`: "memories[1]: metadata must not contain user_id",
		`"metadata":{"k":"` + strings.Repeat("x", 4080) + `"}`: "memories[1]: metadata must be",
		`"other":1`: "memories[1]: text or metadata is required",
	} {
		got := h.call(t, h.alice, "PUT", "/mem0/v1/batch/", `{"memories":[{"memory_id":"`+ids[0]+`","text":"changed"},{"memory_id":"`+ids[1]+`",`+change+`}]}`)
		if got.status != 400 || !strings.Contains(got.body, want) {
			t.Errorf("batch with %.40s: %d %s, want %q", change, got.status, got.body, want)
		}
		if got := h.call(t, h.alice, "GET", "/mem0/v1/memories/"+ids[0]+"/", ""); !strings.Contains(got.body, `"memory":"first"`) {
			t.Errorf("after a batch with %.40s: %s, want the first memory unchanged", change, got.body)
		}
	}
	got := h.call(t, h.alice, "PUT", "/mem0/v1/batch/", `{"memories":[{"memory_id":"`+strings.ToUpper(ids[0])+`","text":"changed"}]}`)
	if got.status != 200 {
		t.Errorf("an id in capital letters: %d %s", got.status, got.body)
	}
}

// A client resets by deleting all listed entities. One may be gone with another whose memories it shares.
func TestMem0DeletionOfEntityWithoutMemories(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	for _, entity := range []string{"user/never", "agent/never", "run/never"} {
		if got := h.call(t, h.alice, "DELETE", "/mem0/v2/entities/"+entity+"/", ""); got.status != 200 {
			t.Errorf("%s: %d %s", entity, got.status, got.body)
		}
	}
}

// With an application key, user_id names the user, and a memory is found without it.
func TestMem0Applications(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	key := h.application(t, 50, tenant.AccessRead|tenant.AccessWrite)
	h.call(t, h.alice, "POST", "/mem0/v3/memories/add/", `{"messages":"of a listed user"}`)
	mem0 := func(method, path, body string, headers ...string) answer {
		t.Helper()
		return h.call(t, key, method, pathMem0+path, body, headers...)
	}
	ids := map[string]string{}
	for _, user := range []string{"ann", "ben"} {
		added := mem0("POST", "/v3/memories/add/", `{"messages":"about `+user+`","user_id":"`+user+`","app_id":"p"}`)
		ids[user] = mem0Ids.FindStringSubmatch(added.body)[1]
		got := mem0("GET", "/v1/memories/"+ids[user]+"/", "")
		if !strings.Contains(got.body, `"memory":"about `+user+`","user_id":"`+user+`","agent_id":null,"app_id":"p","run_id":null,"metadata":null`) {
			t.Errorf("memory of %s: %d %s", user, got.status, got.body)
		}
		if got := mem0("POST", "/v3/memories/", `{"filters":{"AND":[{"user_id":"`+user+`"}]}}`); !strings.Contains(got.body, `"count":1`) || !strings.Contains(got.body, ids[user]) {
			t.Errorf("memories of %s: %s", user, got.body)
		}
	}
	for _, r := range []struct{ method, path, body, want string }{
		{"POST", "/v3/memories/add/", `{"messages":"a"}`, `"code":"user_required"`},
		{"POST", "/v3/memories/search/", `{"query":"a"}`, `"code":"user_required"`},
		{"POST", "/v3/memories/", `{"filters":{"user_id":"*"}}`, "exactly one user"},
		{"POST", "/v3/memories/", `{"filters":{"user_id":"ann"},"user_id":"ben"}`, "exactly one user"},
		{"DELETE", "/v1/memories/?app_id=p", "", `"code":"user_required"`},
		{"DELETE", "/v2/entities/app/p/", "", `"code":"user_required"`},
		{"GET", "/v1/entities/", "", "scope admin"},
	} {
		if got := mem0(r.method, r.path, r.body); !strings.Contains(got.body, r.want) {
			t.Errorf("%s %s %s: %d %s, want %s", r.method, r.path, r.body, got.status, got.body, r.want)
		}
	}
	if got := mem0("GET", "/v1/memories/"+ids["ann"]+"/", "", headerUser, "ben"); got.status != 404 {
		t.Errorf("another user by header: %d %s", got.status, got.body)
	}
	if got := mem0("POST", "/v3/memories/search/", `{"query":"a","user_id":"ann"}`, headerUser, "ben"); got.status != 400 {
		t.Errorf("two users: %d %s", got.status, got.body)
	}
	if got := mem0("PUT", "/v1/batch/", `{"memories":[{"memory_id":"`+ids["ann"]+`","text":"x"},{"memory_id":"`+ids["ben"]+`","text":"y"}]}`); got.status != 200 {
		t.Errorf("batch for two users: %d %s", got.status, got.body)
	}
	if got := mem0("DELETE", "/v2/entities/user/ann/", ""); got.status != 200 {
		t.Errorf("delete: %d %s", got.status, got.body)
	}
	admin := h.application(t, 51, tenant.AccessRead|tenant.AccessAdmin)
	if got := h.call(t, admin, "GET", "/mem0/v1/entities/?page_size=1", ""); !strings.Contains(got.body, `{"count":2,"next":"/mem0/v1/entities/?page=2&page_size=1"`) && !strings.Contains(got.body, `\u0026page_size`) {
		t.Errorf("users: %s", got.body)
	}
	for _, page := range []string{"92233720368547760", "99999999999999999999"} {
		if got := h.call(t, admin, "GET", "/mem0/v1/entities/?page="+page, ""); got.status != 200 || !strings.Contains(got.body, `"count":2,"next":null`) || !strings.Contains(got.body, `"results":[]`) {
			t.Errorf("page %s of the users: %d %s, want an empty page", page, got.status, got.body)
		}
	}
	for user, want := range map[string]int{"ann": 404, "ben": 200} {
		if got := mem0("GET", "/v1/memories/"+ids[user]+"/", ""); got.status != want {
			t.Errorf("memory of %s after the deletion of ann: %d %s", user, got.status, got.body)
		}
	}
}

// fakeExtractions record the messages from which facts are to be extracted.
type fakeExtractions struct {
	created map[tenant.UserID][]extract.Input
	state   extract.State
	asked   []string
}

func (f *fakeExtractions) CreateExtraction(_ context.Context, scope tenant.Scope, in extract.Input) (string, error) {
	f.created[scope.User] = append(f.created[scope.User], in)
	return "e1", nil
}

func (f *fakeExtractions) ExtractionState(_ context.Context, scope tenant.Scope, ofApplications bool, id string) (extract.State, error) {
	f.asked = append(f.asked, fmt.Sprintf("%d %t %s", scope.User, ofApplications, id))
	if f.state.ID != id {
		return extract.State{}, extract.ErrUnknown
	}
	return f.state, nil
}

// With a chat model, facts are extracted unless the request has infer: false.
func TestMem0Extraction(t *testing.T) {
	t.Parallel()
	f := &fakeExtractions{created: map[tenant.UserID][]extract.Input{}}
	h := newTestServer(t, func(c *Config) { c.Extractions = f })
	const pending = `{"message":"Facts are extracted from the messages in the background","status":"PENDING","event_id":"e1"}`
	const messages = `"messages":[{"role":"system","content":"Be kind."},{"role":"user","content":"I like tea"},{"role":"tool","content":"x"}],"agent_id":"a","metadata":{"k":1}`
	for _, r := range []struct{ path, body, want string }{
		{"/v3/memories/add/", `{` + messages + `}`, pending},
		{"/v3/memories/add/", `{` + messages + `,"infer":true}`, pending},
		{"/v1/memories/", `{` + messages + `}`, "[" + pending + "]"},
		{"/v1/memories/", `{` + messages + `,"output_format":"v1.1"}`, `{"results":[` + pending + `]}`},
		{"/v3/memories/add/", `{"messages":" "}`, "at least one non-empty message"},
		{"/v3/memories/add/", `{"messages":"a","timestamp":1}`, "timestamp is not supported"},
	} {
		if got := h.call(t, h.alice, "POST", pathMem0+r.path, r.body); !strings.Contains(got.body, r.want) {
			t.Errorf("%s %s: %d %s, want %s", r.path, r.body, got.status, got.body, r.want)
		}
	}
	if got := h.ok(t, h.alice, "POST", "/mem0/v3/memories/add/", `{`+messages+`,"infer":false}`); strings.Count(got.body, `"event":"ADD"`) != 2 {
		t.Errorf("infer: false: %s", got.body)
	}
	if got := h.call(t, h.application(t, 50, tenant.AccessWrite), "POST", "/mem0/v3/memories/add/", `{"messages":"a","user_id":"ann"}`); strings.TrimSpace(got.body) != pending {
		t.Errorf("with an application key: %s", got.body)
	}
	if len(f.created) != 2 {
		t.Errorf("extractions of %d users, want 2", len(f.created))
	}
	want := extract.Input{Messages: []extract.Message{{Role: "user", Text: "I like tea"}, {Text: "x"}}, Source: "mem0",
		Attributes: memory.Attributes{AgentID: "a", Metadata: json.RawMessage(`{"k":1}`)}}
	for user, created := range f.created {
		if len(created) == 4 {
			if diff := cmp.Diff(want, created[0]); diff != "" {
				t.Errorf("extraction of user %d (-want +got):\n%s", user, diff)
			}
		} else if len(created) != 1 {
			t.Errorf("user %d has %d extractions", user, len(created))
		}
	}
}

func TestMem0Events(t *testing.T) {
	t.Parallel()
	at := time.Date(2025, 5, 9, 12, 0, 0, 0, time.UTC)
	f := &fakeExtractions{}
	h := newTestServer(t, func(c *Config) { c.Extractions = f })
	for want, state := range map[string]extract.State{
		`{"id":"e1","event_type":"ADD","status":"PENDING","error":null,"created_at":"2025-05-09T12:00:00.000Z","updated_at":"2025-05-09T12:00:00.000Z","latency":0}`:      {ID: "e1", CreatedAt: at},
		`{"id":"e1","event_type":"ADD","status":"SUCCEEDED","error":null,"created_at":"2025-05-09T12:00:00.000Z","updated_at":"2025-05-09T12:00:02.000Z","latency":2000}`: {ID: "e1", CreatedAt: at, FinishedAt: at.Add(2 * time.Second)},
		`"status":"FAILED","error":"quota"`: {ID: "e1", CreatedAt: at, FinishedAt: at, Failure: "quota"},
	} {
		f.state = state
		if got := h.call(t, h.alice, "GET", "/mem0/v1/event/e1/", ""); got.status != 200 || !strings.Contains(got.body, want) {
			t.Errorf("event: %d %s, want %s", got.status, got.body, want)
		}
	}
	if got := h.call(t, h.alice, "GET", "/mem0/v1/event/e2/", ""); got.status != 404 {
		t.Errorf("unknown event: %d %s", got.status, got.body)
	}
	key := h.application(t, 50, tenant.AccessRead)
	f.asked = nil
	h.call(t, key, "GET", "/mem0/v1/event/e1/", "")
	h.call(t, key, "GET", "/mem0/v1/event/e1/", "", headerUser, "nobody")
	if len(f.asked) != 2 || !strings.HasSuffix(f.asked[0], "true e1") || !strings.HasSuffix(f.asked[1], "false e1") {
		t.Errorf("asked for %q, want an event of any user of applications and one of the user", f.asked)
	}
}
