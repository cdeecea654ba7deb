package apiserver

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mnemo-dev/mnemo/apiserver/dashboard"
	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/oauth"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// readsOnly are routes other than GET that change nothing.
var readsOnly = map[string]string{
	"POST /api/search":              "a query",
	"POST /api/chat-history/search": "a query",
	"POST /api/chat-history/inject": "a query",
	"POST /api/chat-history/recall": "a query",
	"POST /mem0/v3/memories":        "a query",
	"POST /mem0/v2/memories":        "a query",
	"POST /mem0/v3/memories/search": "a query",
	"POST /mem0/v2/memories/search": "a query",
	"POST /mem0/v1/memories/search": "a query",
	"POST /mcp":                     "each tool is a case of its own",
	"POST /register":                "a client belongs to no tenant and has no access",
}

// checkedElsewhere are routes whose tests use a database that rejects changes without a
// record (postgrestest/audit_check.sql).
var checkedElsewhere = map[string]string{
	"DELETE /api/users/:user":       "internal/postgres: applications_test.go",
	"POST /token":                   "internal/postgres: oauth_test.go",
	"POST /revoke":                  "internal/postgres: oauth_test.go",
	"POST /authorize":               "internal/postgres: oauth_test.go",
	"POST /connect/apps/disconnect": "internal/postgres: oauth_test.go",
	"POST /admin/members/remove":    "dashboard: admin_test.go",
	"POST /admin/members/restore":   "dashboard: admin_test.go",
	"POST /admin/audit":             "dashboard: admin_test.go",
	"POST /platform/sign-out":       "internal/postgres: platform_test.go",
}

// auditedReads are GET routes that leave a record.
var auditedReads = []string{"GET /api/export"}

// auditedRun is a server whose user makes every change, with the records of the user.
type auditedRun struct {
	*testServer
	s        realStores
	scope    tenant.Scope
	token    string
	password string
	cookie   string
	secrets  map[string]string
	covered  map[string]bool
	seen     int // records before the change
}

func newAuditedRun(t *testing.T) *auditedRun {
	t.Helper()
	h, s := newRealServer(t)
	config := h.Config
	config.Sessions, config.Access, config.UserTokens, config.Holdings, config.Administration, config.Platform = s.db, s.db, s.db, s.db.Holdings, s.db, s.db
	config.Providers = []*dashboard.Provider{{Name: "ID", Issuer: "https://id.test", PlatformAdministrators: []string{"ops@id.test"}}}
	config.OAuth = oauth.NewService(oauth.Config{
		Clients: s.db, Grants: s.db, Access: s.db, URL: &url.URL{Scheme: "https", Host: "mnemo.example.com"}, Random: rand.Reader, Now: time.Now,
	})
	config.Registry, config.Cache = prometheus.NewRegistry(), NewCache()
	x := &auditedRun{testServer: &testServer{log: &journal{}}, s: s, covered: map[string]bool{}, secrets: map[string]string{}}
	x.start(t, config)
	spec := s.spec("audit")
	got, err := s.db.Apply(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	x.scope = tenant.Scope{Tenant: got.ID, User: got.Users[0].ID}
	if x.token, err = tenant.NewToken(0, rand.Reader); err != nil {
		t.Fatal(err)
	}
	if x.password, err = tenant.NewPassword(rand.Reader); err != nil {
		t.Fatal(err)
	}
	x.secrets["token"], x.secrets["password"] = x.token, x.password
	err = s.db.Install(t.Context(), got.ID, got.Users[0].Name, tenant.Credential{
		Generation: 1, TokenHash: tenant.HashSecret(x.token), PasswordHash: tenant.HashSecret(x.password), Issuer: tenant.IssuerOperator,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.EnsurePlacement(t.Context(), got.ID); err != nil {
		t.Fatal(err)
	}
	x.seen = len(x.records(t))
	return x
}

func (x *auditedRun) records(t *testing.T) []audit.Record {
	t.Helper()
	if err := x.s.db.SealRecords(t.Context(), x.scope.Tenant, true); err != nil {
		t.Fatal(err)
	}
	all, err := x.s.db.UserRecords(t.Context(), x.scope, 0, 10000)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(r audit.Record) bool { return r.Actor == string(tenant.ActorSystem) }) // jobs
}

// wrote fails unless exactly the verbs were recorded since the last call, by the user and
// with a credential.
func (x *auditedRun) wrote(t *testing.T, route, via string, want ...audit.Verb) {
	t.Helper()
	x.covered[route] = true
	all := x.records(t)
	var got []audit.Verb
	for _, r := range all[x.seen:] {
		got = append(got, r.Verb)
		if r.Actor != "user" || r.Via != via || r.Fingerprint == "" {
			t.Errorf("%s: %s by %s via %q (%s), want the user via %q", route, r.Verb, r.Actor, r.Via, r.Fingerprint, via)
		}
	}
	x.seen = len(all)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: records (-want +got):\n%s", route, diff)
	}
}

// sealingAudit is a log that another process is sealing for long.
type sealingAudit struct{ audit.Store }

func (sealingAudit) SealRecords(context.Context, tenant.ID, bool) error { return audit.ErrSealing }

// A user gets the sealed records while another process is sealing.
func TestAuditWhileSealing(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(c *Config) { c.Audit = sealingAudit{c.Audit} })
	if got := h.call(t, h.alice, "GET", "/api/audit", ""); got.status != http.StatusOK {
		t.Errorf("status %d, want 200: %s", got.status, got.body)
	}
}

// page sends a form of the dashboard and returns the response.
func (x *auditedRun) page(t *testing.T, path string, form url.Values) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+x.addr+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.AddCookie(&http.Cookie{Name: "mnemo_session", Value: x.cookie})
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode >= 400 {
		t.Errorf("POST %s: %d %.300s", path, resp.StatusCode, body)
	}
	return resp, string(body)
}

// Every route, form and tool that changes something leaves exactly the expected records,
// with the user and the credential. A new one without a case fails.
func TestEveryChangeIsAudited(t *testing.T) {
	t.Parallel()
	x := newAuditedRun(t)
	x.changesByAPI(t)
	x.changesByForm(t)
	x.changesByTool(t)
	for _, r := range x.app.GetRoutes(true) {
		route := r.Method + " " + r.Path
		changes := r.Method != http.MethodGet && r.Method != http.MethodHead || slices.Contains(auditedReads, route)
		if changes && readsOnly[route]+checkedElsewhere[route] == "" && !x.covered[route] {
			t.Errorf("%s leaves no audit record, or has no case here", route)
		}
	}
	x.hidesSecrets(t)
}

func (x *auditedRun) changesByAPI(t *testing.T) {
	t.Helper()
	do := func(method, path, route, body string, want ...audit.Verb) answer {
		t.Helper()
		got := x.call(t, x.token, method, path, body)
		if got.status >= 300 {
			t.Errorf("%s %s: %d %s", method, path, got.status, got.body)
		}
		x.wrote(t, method+" "+route, "token", want...)
		return got
	}
	first := do("POST", "/api/memory", "/api/memory", `{"text":"one"}`, audit.MemoryCreate).json(t)["memoryId"].(string)
	do("POST", "/api/memory", "/api/memory", `{"text":"one"}`) // a duplicate changes nothing
	second := do("POST", "/api/v2/memory", "/api/v2/memory", `{"text":"two"}`, audit.MemoryCreate).json(t)["memoryId"].(string)
	do("POST", "/api/v2/memory/update", "/api/v2/memory/update", `{"memoryId":"`+first+`","text":"three"}`, audit.MemoryUpdate)
	do("POST", "/api/memories/"+first+"/merge", "/api/memories/:memoryId/merge", `{"memoryIds":["`+second+`"]}`, audit.MemoryMerge)
	do("POST", "/api/memories/"+first+"/merge", "/api/memories/:memoryId/merge", `{"memoryIds":["`+second+`"]}`) // again changes nothing
	do("POST", "/api/memories/"+first+"/unmerge", "/api/memories/:memoryId/unmerge", `{}`, audit.MemoryUnmerge)
	created := do("POST", "/api/buckets", "/api/buckets", `{"name":"Travel"}`, audit.BucketCreate)
	bucket := created.header.Get("Location")
	do("PATCH", bucket, "/api/buckets/:bucketId", `{"description":"d"}`, audit.BucketUpdate)
	do("DELETE", bucket, "/api/buckets/:bucketId", "", audit.BucketDelete)
	do("DELETE", "/api/memories/"+first, "/api/memories/:memoryId", "", audit.MemoryDelete)
	do("POST", "/api/memories/bulk-delete", "/api/memories/bulk-delete", `{"memoryIds":["`+second+`"]}`, audit.MemoryDelete)
	x.changesByMem0(t, do)
	chat := do("POST", "/api/chat-history/ingest/custom-online", "/api/chat-history/ingest/custom-online", ingestText, audit.ConversationStore).
		json(t)["conversationId"].(string)
	do("PATCH", "/api/chat-history/chats", "/api/chat-history/chats", `{"ids":["`+chat+`"],"pinned":true}`, audit.ConversationUpdate)
	do("DELETE", "/api/chat-history/chats", "/api/chat-history/chats", `{"ids":["`+chat+`"]}`, audit.ConversationDelete)
	if got := x.send(t, x.token, nil, field{"file", talksText(1)}); got.status != 202 {
		t.Errorf("import: %d %s", got.status, got.body)
	}
	x.wrote(t, "POST /api/chat-history/import", "token", audit.ImportCreate)
	do("GET", "/api/export", "/api/export", "", audit.AccountExport)
	x.listsOwnRecords(t)
	made := do("POST", "/api/tokens", "/api/tokens", `{"name":"Laptop"}`, audit.TokenCreate)
	x.secrets["created token"], _ = made.json(t)["token"].(string)
	do("DELETE", made.header.Get("Location"), "/api/tokens/:tokenId", "", audit.TokenRevoke)
	do("DELETE", "/api/account", "/api/account", `{"confirm":"delete everything"}`, audit.AccountDelete)
}

// changesByMem0 makes every change of the API of mem0.
func (x *auditedRun) changesByMem0(t *testing.T, do func(method, path, route, body string, want ...audit.Verb) answer) {
	t.Helper()
	add := func(path string) string {
		t.Helper()
		added := do("POST", path, path, `{"messages":"a memory","user_id":"u"}`, audit.MemoryCreate)
		return regexp.MustCompile(`"id":"([^"]+)"`).FindStringSubmatch(added.body)[1]
	}
	const one, all, add3 = "/mem0/v1/memories/:memory", "/mem0/v1/memories", "/mem0/v3/memories/add"
	memory := add(add3)
	do("PUT", all+"/"+memory, one, `{"text":"changed"}`, audit.MemoryUpdate)
	do("PUT", "/mem0/v1/batch", "/mem0/v1/batch", `{"memories":[{"memory_id":"`+memory+`","metadata":{"a":1}}]}`, audit.MemoryUpdate)
	do("DELETE", all+"/"+memory, one, "", audit.MemoryDelete)
	memory = add(all)
	do("DELETE", "/mem0/v1/batch", "/mem0/v1/batch", `{"memories":[{"memory_id":"`+memory+`"}]}`, audit.MemoryDelete)
	add(add3)
	do("DELETE", all+"?user_id=u", all, "", audit.MemoryDelete)
	for _, version := range []string{"v1", "v2"} {
		add(add3)
		do("DELETE", "/mem0/"+version+"/entities/user/u", "/mem0/"+version+"/entities/:type/:name", "", audit.MemoryDelete)
	}
}

// listsOwnRecords: GET /api/audit returns pages of a verifiable file.
func (x *auditedRun) listsOwnRecords(t *testing.T) {
	t.Helper()
	for _, path := range []string{"/api/audit", "/api/audit?after=2&count=3"} {
		got := x.ok(t, x.token, "GET", path, "")
		v, err := audit.Verify(strings.NewReader(got.body))
		if err != nil || v.Records == 0 || !v.Header.User {
			t.Errorf("GET %s: %+v, %v", path, v, err)
		}
	}
	if got := x.call(t, x.token, "GET", "/api/audit?after=-1&count=x", ""); got.status != 400 {
		t.Errorf("invalid parameters: %d %s", got.status, got.body)
	}
}

func (x *auditedRun) changesByForm(t *testing.T) {
	t.Helper()
	signedIn, _ := x.page(t, "/sign-in", url.Values{"name": {"test/audit/alice"}, "password": {x.password}})
	x.wrote(t, "POST /sign-in", "password", audit.SessionCreate)
	for _, c := range signedIn.Cookies() {
		if c.Name == "mnemo_session" {
			x.cookie, x.secrets["session"] = c.Value, c.Value
		}
	}
	x.signsInWithLink(t)
	do := func(path, route string, form url.Values, want ...audit.Verb) {
		t.Helper()
		x.page(t, path, form)
		x.wrote(t, "POST "+route, "session", want...)
	}
	do("/memories", "/memories", url.Values{"text": {"a note"}}, audit.MemoryCreate)
	do("/buckets", "/buckets", url.Values{"name": {"Forms"}}, audit.BucketCreate)
	memory := x.objects(t, audit.MemoryCreate)
	bucket := x.objects(t, audit.BucketCreate)
	do("/memories/"+memory, "/memories/:id", url.Values{"text": {"another note"}, "version": {"1"}, "bucket": {bucket}}, audit.MemoryUpdate)
	do("/buckets/"+bucket, "/buckets/:id", url.Values{"name": {"Renamed"}, "seen-name": {"Forms"}}, audit.BucketUpdate)
	do("/memories/move", "/memories/move", url.Values{"id": {memory}, "to": {x.defaultBucket(t)}}, audit.MemoryUpdate)
	do("/buckets/"+bucket+"/delete", "/buckets/:id/delete", url.Values{"confirmed": {"1"}}, audit.BucketDelete)
	do("/memories", "/memories", url.Values{"text": {"another note, twice"}}, audit.MemoryCreate)
	other := x.objects(t, audit.MemoryCreate)
	do("/memories/"+memory+"/merge", "/memories/:id/merge", url.Values{"id": {other}}, audit.MemoryMerge)
	do("/memories/"+memory+"/unmerge", "/memories/:id/unmerge", url.Values{"id": {other}}, audit.MemoryUnmerge)
	x.deletesAndUndeletes(t, "/memories", memory, audit.MemoryDelete, audit.MemoryUndelete)
	x.ok(t, x.token, "POST", "/api/chat-history/ingest/custom-online", ingestText)
	x.wrote(t, "POST /api/chat-history/ingest/custom-online", "token", audit.ConversationStore)
	chat := x.objects(t, audit.ConversationStore)
	do("/chats/mark", "/chats/mark", url.Values{"id": {chat}, "mark": {"pin"}}, audit.ConversationUpdate)
	x.deletesAndUndeletes(t, "/chats", chat, audit.ConversationDelete, audit.ConversationUndelete)
	x.importsByForm(t)
	do("/sample", "/sample", url.Values{"back": {"/chats"}}, slices.Concat(slices.Repeat([]audit.Verb{audit.MemoryCreate}, 8), slices.Repeat([]audit.Verb{audit.ConversationStore}, 3))...)
	do("/sample/remove", "/sample/remove", url.Values{"back": {"/chats"}}, audit.MemoryDelete, audit.ConversationDelete)
	do("/account/export", "/account/export", nil, audit.AccountExport)
	do("/account/erase", "/account/erase", url.Values{"confirm": {"delete everything"}}, audit.AccountDelete)
	_, shown := x.page(t, "/connect/token", url.Values{"confirmed": {"1"}})
	x.wrote(t, "POST /connect/token", "session", audit.TokenCreate, audit.TokenRevoke)
	x.secrets["token of the dashboard"] = regexp.MustCompile(`mn_[0-9A-Za-z]{38}`).FindString(shown)
	_, shown = x.page(t, "/connect/tokens", url.Values{"name": {"Laptop"}, "scopes": {"read write"}})
	x.wrote(t, "POST /connect/tokens", "session", audit.TokenCreate)
	x.secrets["token created in the dashboard"] = regexp.MustCompile(`mn_[0-9A-Za-z]{38}`).FindString(shown)
	created, err := x.s.db.UserTokens(t.Context(), x.scope)
	if err != nil || len(created) != 1 {
		t.Fatalf("tokens: %v, %v", created, err)
	}
	do("/connect/tokens/revoke", "/connect/tokens/revoke", url.Values{"id": {created[0].ID}}, audit.TokenRevoke)
	_, shown = x.page(t, "/connect/password", url.Values{"confirmed": {"1"}})
	x.wrote(t, "POST /connect/password", "session", audit.PasswordUpdate)
	x.secrets["password of the dashboard"] = regexp.MustCompile(`id="new-password">([0-9A-Za-z]{24})<`).FindStringSubmatch(shown)[1]
	do("/sign-out", "/sign-out", nil, audit.SessionDelete)
}

// signsInWithLink uses a one-time link, which an administrator created.
func (x *auditedRun) signsInWithLink(t *testing.T) {
	t.Helper()
	code, err := tenant.NewSession(0, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	x.secrets["sign-in link"] = code
	ctx := tenant.WithActor(t.Context(), tenant.Actor{Kind: tenant.ActorAdministrator, Via: "sign-in-link"})
	if err := x.s.db.CreateSignInLink(ctx, tenant.SignInLink{Scope: x.scope, Secret: tenant.HashSecret(code), Lifetime: time.Minute}); err != nil {
		t.Fatal(err)
	}
	x.seen = len(x.records(t))
	before := x.cookie
	x.cookie = ""
	x.page(t, "/sign-in/link", url.Values{"code": {code}})
	x.wrote(t, "POST /sign-in/link", "link", audit.SessionCreate)
	x.cookie = before
}

// deletesAndUndeletes deletes an object, undoes it, and deletes it again.
func (x *auditedRun) deletesAndUndeletes(t *testing.T, list, id string, deleted, undeleted audit.Verb) {
	t.Helper()
	resp, _ := x.page(t, list+"/delete", url.Values{"id": {id}})
	x.wrote(t, "POST "+list+"/delete", "session", deleted)
	to, err := url.Parse(resp.Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	x.page(t, list+"/undelete", url.Values{"deletion": {to.Query().Get("undo")}})
	x.wrote(t, "POST "+list+"/undelete", "session", undeleted)
	x.page(t, list+"/delete", url.Values{"id": {id}})
	x.wrote(t, "POST "+list+"/delete", "session", deleted)
}

// importsByForm uploads a file with the form of the dashboard.
func (x *auditedRun) importsByForm(t *testing.T) {
	t.Helper()
	body, kind := form(t, field{"file", talksText(1)})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+x.addr+"/chats/import", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.AddCookie(&http.Cookie{Name: "mnemo_session", Value: x.cookie})
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	x.wrote(t, "POST /chats/import", "session", audit.ImportCreate)
}

// objects returns the object of the last record with the verb.
func (x *auditedRun) objects(t *testing.T, verb audit.Verb) string {
	t.Helper()
	for _, r := range slices.Backward(x.records(t)) {
		if r.Verb == verb {
			return r.Objects[0]
		}
	}
	t.Fatalf("no record of %s", verb)
	return ""
}

func (x *auditedRun) defaultBucket(t *testing.T) string {
	t.Helper()
	buckets, err := x.s.db.ListBuckets(t.Context(), x.scope)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(buckets[0].ID)
}

func (x *auditedRun) changesByTool(t *testing.T) {
	t.Helper()
	token, err := tenant.NewToken(0, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	err = x.s.db.Install(tenant.WithActor(t.Context(), tenant.TokenActor(tenant.HashSecret(token))), x.scope.Tenant, "alice", tenant.Credential{
		Generation: time.Now().Unix(), TokenHash: tenant.HashSecret(token), Issuer: tenant.IssuerOperator,
	})
	if err != nil {
		t.Fatal(err)
	}
	x.secrets["token after replacement"] = token
	x.wrote(t, "(new token)", "token", audit.TokenCreate)
	client := x.assistant(t, token, protocols[0])
	tools := map[string]struct {
		args map[string]any
		want audit.Verb
	}{
		"store_memory":            {map[string]any{"text": "2025-05-09 a note of the tool"}, audit.MemoryCreate},
		"create_bucket":           {map[string]any{"name": "Tools"}, audit.BucketCreate},
		"update_or_move_memories": {map[string]any{"memoryId": "", "bucketName": "Tools"}, audit.MemoryUpdate},
	}
	list, err := client.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(list.Tools, func(a, b *sdk.Tool) int { // creates before the update
		return strings.Compare(strings.TrimPrefix(a.Name, "create_"), strings.TrimPrefix(b.Name, "create_"))
	})
	for _, tool := range list.Tools {
		if tool.Annotations.ReadOnlyHint {
			continue
		}
		c, known := tools[tool.Name]
		if !known {
			t.Errorf("tool %s leaves no audit record, or has no case here", tool.Name)
			continue
		}
		if _, update := c.args["memoryId"]; update {
			c.args["memoryId"] = x.objects(t, audit.MemoryCreate)
		}
		result, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: tool.Name, Arguments: c.args})
		if err != nil || result.IsError {
			t.Errorf("%s: %v %v", tool.Name, result, err)
		}
		x.wrote(t, "tool "+tool.Name, "token", c.want)
	}
}
