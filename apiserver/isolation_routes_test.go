package apiserver

import (
	"archive/zip"
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/mnemo-dev/mnemo/apiserver/dashboard"
	"github.com/mnemo-dev/mnemo/internal/oauth"
	"github.com/mnemo-dev/mnemo/internal/telemetry"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// isolationServer is a server with everything on real stores, which records the work
// of traced requests.
type isolationServer struct {
	*testServer
	stores realStores
	spans  *tracetest.SpanRecorder
	people int
	sent   map[string]*tally // by owner and stranger
}

// tally counts what was tried as one kind of stranger.
type tally struct {
	routes   map[string]bool
	requests int
	compared int // with the same request about something that does not exist
}

func (x *isolationServer) count(owner *participant, kind, route string, r isolationRequest) {
	name := kind + " → a listed user"
	if owner.acting != "" {
		name = kind + " → a user of an application"
	}
	if x.sent[name] == nil {
		x.sent[name] = &tally{routes: map[string]bool{}}
	}
	x.sent[name].routes[route] = true
	x.sent[name].requests++
	if strings.Contains(r.path+r.body+r.key, "$") {
		x.sent[name].compared++
	}
}

// logTallies writes the table of docs/security.md.
func (x *isolationServer) logTallies(t *testing.T) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(x.sent)) {
		n := x.sent[name]
		t.Logf("%s: %d routes, tools and templates, %d requests, %d of them compared", name, len(n.routes), n.requests, n.compared)
	}
}

// participant is a user with a token and a session of the dashboard, or a user of an
// application with its key.
type participant struct {
	tenant.Scope
	name, token, cookie string
	acting              string            // the user of an application
	ids                 *strings.Replacer // of what the user has
	secrets             map[string]string // by placeholder: values that no other user may see
}

// absent are ids, names and words that do not exist. They have the form of real ones.
var absent = map[string]string{
	"$m": "0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e07", "$c": "0196b2f5-0a77-7d21-b1c4-94e2f7a83d15", "$b": "987654321",
	"$i": "0196b2f5-09d2-7e6b-8a41-5c3f9b7d2e60", "$g": "0196b2f5-09d2-7e6b-8a41-5c3f9b7d2e61", "$n": "Nothing7", "$t": "Notrain8",
	"$e": "x-none", "$k": "key-none", "$s": "test/isol/nobody", "$q": "zyxwvut", "$u": "no-customer", "$a": "0196b2f5-09d2-7e6b-8a41-5c3f9b7d2e62", "$x": "no-agent",
	"$f": "0196b2f5-09d2-7e6b-8a41-5c3f9b7d2e63",
}

func newIsolationServer(t *testing.T) *isolationServer {
	t.Helper()
	return newIsolationServerOn(t, openReal(t))
}

func newIsolationServerOn(t *testing.T, stores realStores) *isolationServer {
	t.Helper()
	x := &isolationServer{stores: stores, spans: tracetest.NewSpanRecorder(), sent: map[string]*tally{}}
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(x.spans), sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.NeverSample()))))
	public, err := url.Parse("https://mnemo.test")
	if err != nil {
		t.Fatal(err)
	}
	db := x.stores.db
	x.testServer, _ = newRealServerOn(t, x.stores, func(c *Config) {
		c.Extractions = db
		c.Sessions, c.Access, c.UserTokens, c.Holdings, c.Administration, c.Platform, c.URL = db, db, db, db.Holdings, db, db, public
		c.Providers = []*dashboard.Provider{{Name: "ID", Issuer: "http://127.0.0.1:1", PlatformAdministrators: []string{"ops@id.test"}}}
		c.Stages = telemetry.NewMetrics(prometheus.NewRegistry())
		c.OAuth = oauth.NewService(oauth.Config{Clients: db, Grants: db, Access: db, URL: public, Random: rand.Reader, Now: time.Now})
		c.RequestTimeout = 2 * time.Minute // the machine may be busy
	})
	return x
}

// participant creates a user, and with full one object of each kind.
func (x *isolationServer) participant(t *testing.T, tenantName, user string, full bool) *participant {
	t.Helper()
	token := x.stores.tenant(t, tenantName, user, false)
	who, err := x.stores.db.Identify(t.Context(), tenant.HashSecret(token))
	if err != nil {
		t.Fatal(err)
	}
	m := &participant{Scope: who.Scope, token: token, name: "test/" + tenantName + "/" + user, cookie: rand.Text()}
	password := tenant.HashSecret(rand.Text())
	token2 := tenant.HashSecret(token + "2")
	err = x.stores.db.Install(t.Context(), who.Tenant, user, tenant.Credential{Generation: time.Now().UnixNano(), TokenHash: token2, PasswordHash: password, Issuer: tenant.IssuerOperator})
	if err != nil {
		t.Fatal(err)
	}
	err = x.stores.db.SignIn(t.Context(), tenant.SignIn{Name: tenant.SignInName{Namespace: "test", Tenant: tenantName, User: user},
		Password: password, Address: "192.0.2." + fmt.Sprint(x.people%250), Session: tenant.HashSecret(m.cookie), Lifetime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if full {
		x.fillParticipant(t, m)
	}
	return m
}

// fillParticipant creates one object of each kind with unique names, and stores their ids.
func (x *isolationServer) fillParticipant(t *testing.T, m *participant) {
	t.Helper()
	x.people++
	n := fmt.Sprint(x.people)
	v := map[string]string{"$n": "Travel" + n, "$t": "Trains" + n, "$e": "ext-" + n, "$k": "key-" + n, "$s": m.name, "$q": "marmalade" + n, "$u": cmp.Or(m.acting, "customer-"+n), "$x": "planner" + n}
	created := x.call(t, m.token, "POST", "/api/buckets", `{"name":"`+v["$n"]+`"}`, m.headers()...)
	v["$b"] = strings.TrimPrefix(created.header.Get("Location"), "/api/buckets/")
	body := `{"text":"2025-05-09 likes ` + v["$q"] + `","agentId":"` + v["$x"] + `","bucketId":` + v["$b"] + `}`
	stored := x.call(t, m.token, "POST", "/api/memory", body, append(m.headers(), "Idempotency-Key", v["$k"])...)
	v["$m"], _ = stored.json(t)["memoryId"].(string)
	chat := strings.NewReplacer("x-1", v["$e"], "Trains", v["$t"], "By the window.", "By the window, with "+v["$q"]).Replace(ingestText)
	ingested := x.call(t, m.token, "POST", "/api/chat-history/ingest/custom-online", strings.Replace(chat, "}]}}", `}]},"platform":"`+v["$n"]+`"}`, 1), m.headers()...).json(t)
	v["$c"], _ = ingested["conversationId"].(string)
	v["$i"], _ = ingested["importId"].(string)
	v["$f"] = x.extraction(t, v["$m"])
	v["$g"], v["$a"] = absent["$g"], absent["$a"]
	if m.acting == "" {
		v["$a"], _ = x.call(t, m.token, "POST", "/api/tokens", `{"name":"Laptop"}`).json(t)["id"].(string)
		v["$g"] = x.connect(t, m)
	}
	m.secrets, m.ids = v, replacerOf(v)
}

// extraction stores messages of the user of a memory, without a job, and returns their id.
func (x *isolationServer) extraction(t *testing.T, memory string) (id string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), x.stores.ownerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	err = conn.QueryRow(t.Context(), `insert into extractions (tenant_id, user_id, id, input)
		select tenant_id, user_id, gen_random_uuid(), '{"Messages":[{"text":"a"}]}' from memories where id = $1 returning id`, memory).Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// headers are the headers of the participant's requests besides the token.
func (m *participant) headers() []string {
	if m.acting == "" {
		return nil
	}
	return []string{headerUser, m.acting}
}

// connect connects an app and returns the id of its grant.
func (x *isolationServer) connect(t *testing.T, m *participant) string {
	t.Helper()
	client, err := x.OAuth.Register(t.Context(), oauth.Registration{Name: "Claude", RedirectURIs: []string{"https://app.test/cb"}}, fmt.Sprint("192.0.2.", x.people))
	if err != nil {
		t.Fatal(err)
	}
	request := oauth.Request{ClientID: client.ID, ResponseType: "code", ChallengeMethod: "S256",
		Challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", RedirectURI: "https://app.test/cb"} // RFC 7636, appendix B
	ask, err := x.OAuth.Check(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	to, err := x.OAuth.Approve(t.Context(), m.Scope, tenant.HashSecret(m.cookie), ask)
	if err != nil {
		t.Fatal(err)
	}
	back, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.OAuth.Redeem(t.Context(), oauth.CodeInput{ClientID: client.ID, Code: back.Query().Get("code"),
		RedirectURI: request.RedirectURI, Verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"}); err != nil {
		t.Fatal(err)
	}
	apps, err := x.OAuth.ConnectedApps(t.Context(), m.Scope)
	if err != nil || len(apps) == 0 {
		t.Fatalf("connected apps %v, %v", apps, err)
	}
	return apps[0].ID
}

func replacerOf(values map[string]string) *strings.Replacer {
	var pairs []string
	for name, value := range values {
		pairs = append(pairs, name, value)
	}
	return strings.NewReplacer(pairs...)
}

// outcome is what a user can observe of a request.
type outcome struct {
	status int
	body   string   // with the values of placeholders replaced by their names
	raw    string   // the headers and the body as received
	header string   // the headers that depend on the result
	work   []string // statements, calls to Milvus and stages, in order of their names
}

var (
	volatile = regexp.MustCompile(`"processingTime":("[^"]*"|[0-9.e+-]+)|"jsonrpc"|\?v=[0-9a-f]+`)
	// notWork are the spans of connections to the database, of jobs, and of a search in
	// Milvus, which the exact search cancels if it covers all units, sometimes before it
	// begins. The stage of both searches is work.
	notWork = regexp.MustCompile(`^(pool\.acquire|prepare|connect|job |milvus\.proto\.milvus\.MilvusService/Search$)`)
)

// send sends the case of a route as a user, with values for the placeholders.
func (x *isolationServer) send(t *testing.T, who *participant, route string, r isolationRequest, values map[string]string) outcome {
	t.Helper()
	req := newIsolationRequest(t, x.addr, route, r, replacerOf(values))
	trace := make([]byte, 24)
	_, _ = rand.Read(trace)
	req.Header.Set("Traceparent", "00-"+hex.EncodeToString(trace[:16])+"-"+hex.EncodeToString(trace[16:])+"-01")
	req.Header.Set("Authorization", "Bearer "+who.token)
	if who.acting != "" {
		req.Header.Set(headerUser, who.acting)
	} else {
		req.Header.Set("Cookie", cookieName+"="+who.cookie)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatalf("%s %s: %v", route, r.path, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", route, r.path, err)
	}
	if resp.Header.Get("Content-Type") == "application/zip" {
		raw = unzipped(t, raw)
	}
	o := outcome{status: resp.StatusCode, raw: fmt.Sprint(resp.Header) + string(raw), work: x.work(hex.EncodeToString(trace[:16]))}
	o.body = unnamed(unnamed(volatile.ReplaceAllString(string(raw), ""), values), absent)
	for _, name := range []string{"Location", "Content-Type", "Retry-After", "X-Degraded", "Set-Cookie", "Allow", "Cache-Control"} {
		o.header += name + ": " + unnamed(unnamed(strings.Join(resp.Header[name], ", "), values), absent) + "\n"
	}
	return o
}

const cookieName = "mnemo_session"

// newIsolationRequest returns the request of a case.
func newIsolationRequest(t *testing.T, addr, route string, r isolationRequest, fill *strings.Replacer) *http.Request {
	t.Helper()
	method, pattern, _ := strings.Cut(route, " ")
	body := fill.Replace(r.body)
	path, _, _ := strings.Cut(pattern, "/:")
	switch method {
	case "tool":
		method, path, body = "POST", pathMCP, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+pattern+`","arguments":`+body+`}}`
	case "template":
		method, path, body = "POST", pathMCP, `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"`+body+`"}}`
	}
	var escaped []string
	for part := range strings.SplitSeq(r.path, "&") { // the values contain no characters to escape but the slash of names
		escaped = append(escaped, fill.Replace(part))
	}
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr+path+strings.Join(escaped, "&"), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case strings.HasPrefix(body, "{"):
		req.Header.Set("Content-Type", "application/json")
	case strings.HasPrefix(body, "--b"):
		req.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	case body != "":
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	if r.key != "" {
		req.Header.Set("Idempotency-Key", fill.Replace(r.key))
	}
	if r.after != "" {
		req.Header.Set(headerLastEventID, r.after)
	}
	return req
}

// unnamed replaces the values of placeholders, plain or escaped, by their names, except
// for the ids of buckets, which are short: only a field of a form that could not be processed repeats them.
func unnamed(text string, values map[string]string) string {
	for name, value := range values {
		if name == "$b" {
			text = strings.ReplaceAll(text, `name="bucket" value="`+value+`"`, `name="bucket" value="$b"`)
			continue
		}
		text = strings.ReplaceAll(text, value, name)
		text = strings.ReplaceAll(text, url.QueryEscape(value), name)
		text = strings.ReplaceAll(text, strings.ReplaceAll(value, "/", "&#x2F;"), name)
	}
	return text
}

func unzipped(t *testing.T, raw []byte) (out []byte) {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		out = append(append(out, f.Name...), text...)
	}
	return out
}

// work returns the statements, calls to Milvus and stages of a trace. How connections
// are obtained depends on other requests, as does whether a connection has prepared a
// statement, and jobs run afterwards.
func (x *isolationServer) work(trace string) (out []string) {
	for _, s := range x.spans.Ended() {
		if s.SpanContext().TraceID().String() != trace || notWork.MatchString(s.Name()) || slices.ContainsFunc(s.Attributes(), isPreparation) {
			continue
		}
		name := s.Name()
		for _, a := range s.Attributes() {
			if a.Key == "db.query.text" {
				name += " " + a.Value.AsString()
			}
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// isPreparation reports whether a span with the attribute prepares a statement.
func isPreparation(a attribute.KeyValue) bool { return a.Key == otelpgx.PrepareStmtNameKey }

// everyRoute returns the route table, the tools and the resource templates of the
// running server.
func (x *isolationServer) everyRoute(t *testing.T, as *participant) (all []string) {
	t.Helper()
	for _, r := range x.app.GetRoutes(true) {
		if r.Method != http.MethodHead {
			all = append(all, r.Method+" "+r.Path)
		}
	}
	for method, names := range map[string][2]string{"tools/list": {"tools", "name"}, "resources/templates/list": {"resourceTemplates", "uriTemplate"}} {
		got := x.call(t, as.token, "POST", pathMCP, `{"jsonrpc":"2.0","id":1,"method":"`+method+`"}`)
		var answer struct{ Result map[string]json.RawMessage }
		if err := json.Unmarshal([]byte(got.body), &answer); err != nil {
			t.Fatalf("%s: %s", method, got.body)
		}
		var list []map[string]any
		if err := json.Unmarshal(answer.Result[names[0]], &list); err != nil || len(list) == 0 {
			t.Fatalf("%s: %s", method, got.body)
		}
		for _, item := range list {
			all = append(all, map[string]string{"name": "tool ", "uriTemplate": "template "}[names[1]]+fmt.Sprint(item[names[1]]))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestIsolationOfEveryRoute calls every route, MCP tool and resource with the ids,
// names, cursors and keys of another user and of another tenant. Each must behave as
// for something that does not exist: the same status, headers and body, and the same
// work in the stores, which decides how long it takes.
//
// It does not run in parallel with other tests, which would start spans without its
// tracer provider.
func TestIsolationOfEveryRoute(t *testing.T) {
	x := newIsolationServer(t)
	owner := x.participant(t, "isol", "alice", true)
	strangers := map[string]*participant{"another user": x.participant(t, "isol", "bob", false), "another tenant": x.participant(t, "isol2", "carol", false)}
	x.warm(t, owner)
	routes := x.everyRoute(t, owner)
	for _, route := range routes {
		if len(isolationCases[route]) == 0 {
			t.Errorf("%s has no case in isolationCases", route)
		}
	}
	for route := range isolationCases {
		if !slices.Contains(routes, route) {
			t.Errorf("isolationCases has %s, which does not exist", route)
		}
	}
	x.isolatesFrom(t, owner, strangers, routes)
	x.isolatesApplications(t, owner, routes)
	x.isolatesJobs(t, owner, strangers)
	x.casesMatter(t, routes)
	x.isolatesWrites(t)
	x.isolatesSharedIDs(t)
	x.logTallies(t)
}

// isolatesFrom sends every case as each of the strangers.
func (x *isolationServer) isolatesFrom(t *testing.T, owner *participant, strangers map[string]*participant, routes []string) {
	t.Helper()
	before := x.everything(t, owner)
	for _, last := range []bool{false, true} {
		for _, route := range routes {
			for _, r := range isolationCases[route] {
				for kind, stranger := range strangers {
					if lastCases[route] == last {
						x.isolated(t, kind, stranger, owner, route, r)
					}
				}
			}
		}
	}
	if after := x.everything(t, owner); after != before {
		t.Errorf("the owner's data changed:\n%s\nbefore:\n%s", after, before)
	}
}

// isolatesApplications isolates a listed user from an application of the tenant that acts
// for a user of the same name, and a user of an application from its other users, from
// listed users and from another tenant's application that acts for a user of the same name.
// The other routes, such as the dashboard's, have no keys.
func (x *isolationServer) isolatesApplications(t *testing.T, listed *participant, routes []string) {
	t.Helper()
	routes = slices.DeleteFunc(slices.Clone(routes), func(route string) bool {
		return !strings.Contains(route, " /api/") && !strings.Contains(route, pathMem0) && !strings.Contains(route, pathMCP) && strings.Contains(route, " /")
	})
	x.isolatesFrom(t, listed, map[string]*participant{"an application": x.acting(t, "isol", "alice")}, routes)
	owner := x.acting(t, "isol", "customer-1")
	x.fillParticipant(t, owner)
	who, err := x.stores.db.Identify(t.Context(), tenant.HashSecret(owner.token))
	if err != nil {
		t.Fatal(err)
	}
	acting, err := x.stores.db.ActFor(t.Context(), who, owner.acting, false)
	if err != nil || acting.User == tenant.NoUser {
		t.Fatalf("the user of the application is %+v, %v", acting, err)
	}
	owner.Scope = acting.Scope
	x.warm(t, owner)
	x.isolatesFrom(t, owner, map[string]*participant{
		"another user of the application":    x.acting(t, "isol", "customer-2"),
		"an unknown user of the application": x.acting(t, "isol", "nobody"),
		"an application of another tenant":   x.acting(t, "isol2", "customer-1"),
		"a listed user of the tenant":        x.participant(t, "isol", "dave", false),
	}, routes)
}

// acting creates an application of a tenant and returns a user of it, who does not exist
// yet.
func (x *isolationServer) acting(t *testing.T, tenantName, user string) *participant {
	t.Helper()
	key := x.stores.application(t, tenantName)
	return &participant{token: key, acting: user, name: tenantName + "/" + user}
}

// warm waits until the owner's data is indexed, so that searches do not score it exactly.
func (x *isolationServer) warm(t *testing.T, owner *participant) {
	t.Helper()
	x.eventually(t, func() string {
		if got := x.call(t, owner.token, "GET", "/api/chat-history/imports/"+owner.secrets["$i"], "", owner.headers()...); !strings.Contains(got.body, `"indexed":1`) {
			return "not indexed: " + got.body
		}
		return ""
	})
}

// everything returns all data of a user, as exported, and what search finds.
func (x *isolationServer) everything(t *testing.T, owner *participant) string {
	t.Helper()
	found := x.call(t, owner.token, "GET", "/api/memory?query="+owner.secrets["$q"], "", owner.headers()...).body
	apps, err := x.OAuth.ConnectedApps(t.Context(), owner.Scope)
	if err != nil {
		t.Fatal(err)
	}
	return x.exported(t, owner) + found + fmt.Sprint(len(apps))
}

// exported returns the export of a user without its time.
func (x *isolationServer) exported(t *testing.T, who *participant) string {
	t.Helper()
	export := unzipped(t, []byte(x.call(t, who.token, "GET", "/api/export", "", who.headers()...).body))
	return regexp.MustCompile(`"exportedAt": *"[^"]*"`).ReplaceAllString(string(export), "")
}

// isolated compares a request that names the owner's things with one that names
// nothing. Work may differ by accident, such as after a timeout, so a difference
// counts if it repeats.
func (x *isolationServer) isolated(t *testing.T, kind string, stranger, owner *participant, route string, r isolationRequest) {
	t.Helper()
	x.count(owner, kind, route, r)
	request := r.path + r.body + r.key
	var got, want outcome
	for range 3 {
		got = x.send(t, stranger, route, r, owner.secrets)
		for name, secret := range owner.secrets {
			// Ids of buckets are short numbers, which occur by accident.
			// A stranger's own name may be the same.
			if name != "$b" && name != "$s" && secret != stranger.acting && !strings.Contains(request, name) && strings.Contains(got.raw, secret) {
				t.Errorf("%s: %s %s: the answer contains %s (%s): %.500s", kind, route, r.path, secret, name, got.body)
			}
		}
		if !strings.Contains(request, "$") {
			return
		}
		want = x.send(t, stranger, route, r, absent)
		if got.status == want.status && got.body == want.body && got.header == want.header && slices.Equal(got.work, want.work) {
			return
		}
	}
	switch {
	case got.status != want.status || got.body != want.body || got.header != want.header:
		t.Errorf("%s: %s %s %s: %d %s%.600s\nbut for something that does not exist: %d %s%.600s", kind, route, r.path, r.body, got.status, got.header, got.body, want.status, want.header, want.body)
	default:
		t.Errorf("%s: %s %s %s: the work is\n%s\nbut for something that does not exist\n%s", kind, route, r.path, r.body, strings.Join(got.work, "\n"), strings.Join(want.work, "\n"))
	}
}

// casesMatter fails for a case whose answer is the same for the owner as for something
// that does not exist: it would not notice a missing check.
func (x *isolationServer) casesMatter(t *testing.T, routes []string) {
	t.Helper()
	worked := 0
	for _, route := range routes {
		for _, r := range isolationCases[route] {
			if sameForOwner[route] || !strings.Contains(r.path+r.body+r.key, "$") {
				continue
			}
			// A new user each time, because requests change and delete.
			m := x.participant(t, fmt.Sprintf("ctl%d", x.people/4), []string{"alice", "bob", "carol", "dave"}[x.people%4], true)
			want, got := x.send(t, m, route, r, absent), x.send(t, m, route, r, m.secrets)
			worked += len(got.work)
			if got.status == want.status && got.body == want.body && got.header == want.header {
				t.Errorf("%s %s %s: the owner gets the same as for something that does not exist: %d %.300s", route, r.path, r.body, got.status, got.body)
			}
		}
	}
	if worked < len(routes) {
		t.Errorf("%d spans of work were recorded for %d routes", worked, len(routes))
	}
	for route := range maps.Keys(sameForOwner) {
		if !slices.Contains(routes, route) {
			t.Errorf("sameForOwner has %s, which does not exist", route)
		}
	}
}
