package dashboard_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// allowsAnApp: in a browser, from the app's link through sign-in and consent to the
// app's page, and disconnecting under Connect.
func allowsAnApp(t *testing.T, s *site, b *browser) {
	alice := s.newTenant(t, nil, "alice")[0]
	came := make(chan string, 10)
	theirs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/callback" {
			came <- r.URL.RawQuery
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<!doctype html><link rel="icon" href="data:,"><p>Back at the app</p>`)
	}))
	defer theirs.Close()
	p := s.register(t, "Notebook", "http://127.0.0.1/callback") // whichever its port
	tab := b.newContext(t, s.urls[0])
	ask := p.request("redirect_uri", theirs.URL+"/callback")
	tab.open(ask)
	tab.at("/sign-in?next=%2Fauthorize")
	tab.fill("input[name=name]", alice.name.String())
	tab.fill("input[name=password]", alice.password)
	tab.click("button.primary")
	tab.sees("Allow Notebook to access your memories and chats?")
	tab.sees(strings.TrimPrefix(theirs.URL, "http://") + ", on this computer")
	tab.sees("It can’t delete anything.")
	tab.looks("authorize")
	tab.click("button[value=deny]")
	tab.sees("Back at the app")
	if q := <-came; !strings.HasPrefix(q, "error=access_denied&") || !strings.Contains(q, "state=s%22%26%3C1%3E") {
		t.Errorf("refused, and sent back with %s", q)
	}
	tab.open("/connect")
	tab.sees("Connected apps")
	tab.sees(s.urls[0] + "/mcp. You then approve access here.")
	tab.open(ask)
	tab.click("button[value=allow]") // the box is not ticked: the browser asks for it
	tab.until("document.querySelector('input[name=asked]:invalid') === document.activeElement", "be asked to tick the box")
	tab.click("input[name=asked]")
	tab.click("button[value=allow]")
	tab.sees("Back at the app")
	q, err := url.ParseQuery(<-came)
	if err != nil || q.Get("state") != `s"&<1>` || q.Get("iss") != s.urls[0] {
		t.Fatalf("redirect after authorization has query %v, %v", q, err)
	}
	got := p.redeem(q.Get("code"), "redirect_uri", theirs.URL+"/callback")
	s.accepted(t, got.Access, http.StatusOK)

	const store = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"store_memory","arguments":{"text":"2026-05-03 Likes tea"}}}`
	status, body := s.send(t, 0, "/mcp", store, "Authorization", "Bearer "+got.Access, "Content-Type", "application/json", "Accept", "application/json, text/event-stream")
	if status != http.StatusOK || !strings.Contains(body, "memoryId") {
		t.Fatalf("memory of the app: %d %s", status, body)
	}
	tab.open("/activity")
	tab.sees("Notebook Added 1 memory")
	tab.looks("activity-app")

	tab.open("/connect")
	tab.sees("Notebook")
	tab.sees("Connected just now, last active just now")
	tab.looks("connected")
	tab.click(".rows button.danger")
	tab.sees("App disconnected.")
	tab.seesNot("Notebook")
	s.accepted(t, got.Access, http.StatusUnauthorized)
	tab.open("/activity")
	tab.sees("A disconnected app Added 1 memory")
}

// rejectsForgedRequests: requests that do not match the client or the user fail.
func rejectsForgedRequests(t *testing.T, s *site, _ *browser) {
	users := s.newTenant(t, nil, "alice", "bob")
	v := s.signedIn(t, 0, users[0])
	p := s.register(t, "<b>Raw</b> app")
	for name, tc := range map[string]struct {
		request string
		says    string
	}{
		"other redirect URI":          {p.request("redirect_uri", "https://evil.test/"), "redirect_uri is not registered for this client"},
		"redirect URI with suffix":    {p.request("redirect_uri", callback+"/../x"), "redirect_uri is not registered for this client"},
		"unknown client":              {p.request("client_id", "nobody"), "this client is not registered"},
		"PKCE method plain":           {p.request("code_challenge_method", "plain"), "code_challenge_method S256"},
		"no code challenge":           {p.request("code_challenge", ""), "code_challenge is required"},
		"implicit flow":               {p.request("response_type", "token"), "response_type must be code"},
		"other resource":              {p.request("resource", "https://evil.test/mcp"), "resource must be " + s.urls[0] + "/mcp"},
		"two redirect URIs":           {p.request() + "&redirect_uri=https%3A%2F%2Fevil.test", "sent redirect_uri twice"},
		"malformed query":             {"/authorize?client_id=%zz", "invalid access request"},
		"no parameters":               {"/authorize", "client_id is required"},
		"client ID with NUL":          {p.request("client_id", "\x00"), "this client is not registered"},
		"client ID not UTF-8":         {p.request("client_id", "\xff"), "this client is not registered"},
		"loopback URI with user info": {p.request("redirect_uri", "http://127.0.0.1:9@evil.test/callback"), "redirect_uri is not registered for this client"},
	} {
		for who, v := range map[string]visitor{"signed in": v, "nobody": s.visitor(t, 0)} {
			// No way leads to evil.test: a status of 400, not a redirect.
			if status, body := v.get(t, tc.request); status != http.StatusBadRequest || !strings.Contains(body, strings.ReplaceAll(tc.says, "'", "&#39;")) {
				t.Errorf("%s, %s: %d %s", name, who, status, body)
			}
		}
		form := strings.TrimPrefix(tc.request, "/authorize?") + "&answer=allow"
		if q, err := url.ParseQuery(form); err == nil {
			if status, _ := v.post(t, "/authorize", q); status != http.StatusBadRequest {
				t.Errorf("%s, answered: %d", name, status)
			}
		}
	}

	yes := s.asksTwice(t, v, users[1], p)
	for name, headers := range map[string][]string{
		"cross-site": {"Sec-Fetch-Site", "cross-site"}, "same-site": {"Sec-Fetch-Site", "same-site"}, "direct navigation": {"Sec-Fetch-Site", "none"},
		"other origin": {"Sec-Fetch-Site", "", "Origin", "https://evil.test"}, "no origin": {"Sec-Fetch-Site", ""},
	} {
		if status, _ := v.post(t, "/authorize", yes, headers...); status != http.StatusForbidden {
			t.Errorf("an answer from %s: %d", name, status)
		}
		if status, _ := v.post(t, "/connect/apps/disconnect", url.Values{"id": {"x"}}, headers...); status != http.StatusForbidden {
			t.Errorf("an end from %s: %d", name, status)
		}
	}
	if apps, err := s.db.ConnectedApps(t.Context(), users[0].Scope); err != nil || len(apps) != 0 {
		t.Errorf("a forged answer let %+v in, %v", apps, err)
	}
	for _, page := range []string{"/connect", "/connect/apps"} {
		// Every replica shows the configured URL, regardless of the request's host.
		if _, body := s.signedIn(t, 1, users[0]).get(t, page); !strings.Contains(body, ">"+s.urls[0]+"/mcp<") {
			t.Errorf("%s does not give the address to ask at", page)
		}
	}
	if status, _ := s.visitor(t, 0).post(t, "/authorize", yes); status != http.StatusSeeOther {
		t.Errorf("an answer of nobody: %d, want the sign-in page", status)
	}
	s.guardsThePage(t, v, p)

	// Users cannot see or disconnect the apps of others.
	p.connect(v)
	apps, err := s.db.ConnectedApps(t.Context(), users[0].Scope)
	if err != nil || len(apps) != 1 {
		t.Fatalf("connected apps %+v, %v", apps, err)
	}
	bob := s.signedIn(t, 0, users[1])
	if _, body := bob.get(t, "/connect"); strings.Contains(body, "Raw") {
		t.Error("another user sees the app")
	}
	for _, id := range []string{apps[0].ID, "x", "", "\x00"} {
		if status, body := bob.post(t, "/connect/apps/disconnect", url.Values{"id": {id}}); status != http.StatusNotFound || !strings.Contains(body, "App not connected.") {
			t.Errorf("another user ends %q: %d", id, status)
		}
	}
	if apps, err := s.db.ConnectedApps(t.Context(), users[0].Scope); err != nil || len(apps) != 1 {
		t.Errorf("afterwards there are %+v, %v", apps, err)
	}
}

// asksTwice: consent without the checkbox or from another user is requested again.
// It returns the form that would be accepted.
func (s *site) asksTwice(t *testing.T, v visitor, other user, p *oauthClient) url.Values {
	t.Helper()
	_, body := v.get(t, p.request())
	yes := hiddenFields(body)
	yes.Set("answer", "allow")
	if status, body := v.post(t, "/authorize", yes); status != http.StatusBadRequest || !strings.Contains(body, "Tick the box") || !strings.Contains(body, p.id) {
		t.Errorf("authorized without the confirmation box: %d %s", status, body)
	}
	yes.Set("asked", "yes")
	status, body := s.signedIn(t, 0, other).post(t, "/authorize", yes)
	if status != http.StatusConflict || !strings.Contains(body, "signed in as a different user") || !strings.Contains(body, "<strong><bdi>bob</bdi></strong>") ||
		hiddenFields(body).Get("for") != other.name.String() || !strings.Contains(body, `name="asked" value="yes" required>`) {
		t.Errorf("authorized by a different user than the page named: %d %s", status, body)
	}
	without := maps.Clone(yes)
	without.Del("for")
	if status, _ := v.post(t, "/authorize", without); status != http.StatusConflict {
		t.Errorf("authorized without naming the user: %d", status)
	}
	if apps, err := s.db.ConnectedApps(t.Context(), other.Scope); err != nil || len(apps) != 0 {
		t.Errorf("the rejected requests authorized %+v, %v", apps, err)
	}
	return yes
}

// namesTheApp: a private-use redirect URI is shown completely, and not as local.
func namesTheApp(t *testing.T, s *site, b *browser) {
	alice := s.newTenant(t, nil, "alice")[0]
	v := s.signedIn(t, 0, alice)
	const theirs = "cursor://anysphere.cursor-mcp/oauth/user-of-an-editor-with-a-long-name/callback?for=mnemo"
	p := s.register(t, "Editor", theirs)
	tab := b.newContext(t, s.urls[0])
	tab.signIn(alice)
	tab.open(p.request("redirect_uri", theirs))
	tab.sees("an app that handles " + theirs)
	tab.looks("authorize-app")
	_, body := v.get(t, p.request("redirect_uri", theirs))
	if !strings.Contains(body, "<h1>Allow <bdi>Editor</bdi> to access") { // a name in Arabic must not reorder the sentence
		t.Errorf("the name is not isolated from the text around it: %s", body)
	}
	if !strings.Contains(body, "an app that handles <strong>"+theirs+"</strong>") || strings.Contains(body, "this computer") {
		t.Errorf("the page says %s", body)
	}
	to := v.answer(t, p.url+p.request("redirect_uri", theirs), "allow")
	if !strings.HasPrefix(to.String(), theirs+"&code=") {
		t.Errorf("led to %s", to)
	}
	if got := p.redeem(to.Query().Get("code"), "redirect_uri", theirs); got.status != http.StatusOK {
		t.Errorf("redeemed: %+v", got)
	}
	if _, body := v.get(t, "/connect"); !strings.Contains(body, "redirects to <bdi>"+theirs) {
		t.Errorf("Connect lists %s", body)
	}
}

// guardsThePage: the page cannot be framed, and its form can only redirect to the
// client.
func (s *site) guardsThePage(t *testing.T, v visitor, p *oauthClient) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.urls[0]+p.request(), nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := v.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("the page: %s, %v", res.Status, err)
	}
	csp := res.Header.Get("Content-Security-Policy")
	for _, part := range []string{"frame-ancestors 'none'", "default-src 'none'", "form-action 'self' http://127.0.0.1:9;"} {
		if !strings.Contains(csp, part) {
			t.Errorf("content security policy %q lacks %q", csp, part)
		}
	}
	if res.Header.Get("Cache-Control") != "no-store" || res.Header.Get("Referrer-Policy") != "same-origin" || strings.Contains(string(body), "<b>Raw") {
		t.Errorf("headers %v, body %s", res.Header, body)
	}
}

// checksSecrets: the token endpoint rejects wrong and reused secrets.
func checksSecrets(t *testing.T, s *site, _ *browser) {
	users := s.newTenant(t, nil, "alice")
	stranger := s.newTenant(t, nil, "carol")[0]
	v := s.signedIn(t, 0, users[0])
	p, other := s.register(t, "One"), s.register(t, "Other")
	code := v.answer(t, p.url+p.request(), "allow").Query().Get("code")
	for name, tc := range map[string]struct {
		change []string
		want   string
	}{
		"wrong verifier":     {[]string{"code_verifier", "x" + p.verifier}, "invalid_grant"},
		"no verifier":        {[]string{"code_verifier", ""}, "invalid_grant"},
		"other redirect URI": {[]string{"redirect_uri", "http://127.0.0.1:10/callback"}, "invalid_grant"},
		"other client":       {[]string{"client_id", other.id}, "invalid_grant"},
		"unknown client":     {[]string{"client_id", "nobody"}, "invalid_client"},
		"client ID with NUL": {[]string{"client_id", "\x00"}, "invalid_client"},
		"no client":          {[]string{"client_id", ""}, "invalid_request"},
		"other resource":     {[]string{"resource", "https://evil.test/mcp"}, "invalid_target"},
		"other code":         {[]string{"code", code[:len(code)-1]}, "invalid_grant"},
		"password grant":     {[]string{"grant_type", "password"}, "unsupported_grant_type"},
	} {
		want := map[bool]int{true: http.StatusUnauthorized, false: http.StatusBadRequest}[tc.want == "invalid_client"]
		if got := p.redeem(code, tc.change...); got.Error != tc.want {
			t.Errorf("%s: Error = %v, want %v", name, got.Error, tc.want)
		} else if got.Access != "" {
			t.Errorf("%s: Access = %q, want it empty", name, got.Access)
		} else if got.status != want {
			t.Errorf("%s: status = %v, want %v", name, got.status, want)
		}
	}
	first := p.redeem(code)
	s.accepted(t, first.Access, http.StatusOK)
	// A reused code was stolen: the tokens it issued are revoked.
	if got := p.redeem(code); got.Error != "invalid_grant" {
		t.Errorf("a code used twice: %+v", got)
	}
	s.accepted(t, first.Access, http.StatusUnauthorized)
	if got := p.refresh(first.Refresh); got.Error != "invalid_grant" {
		t.Errorf("its refresh token then: %+v", got)
	}

	second := p.connect(v)
	third := p.refresh(second.Refresh)
	s.accepted(t, third.Access, http.StatusOK)
	if got := other.refresh(third.Refresh); got.Error != "invalid_grant" {
		t.Errorf("another app refreshes: %+v", got)
	}
	if got := p.refresh(third.Access); got.Error != "invalid_grant" {
		t.Errorf("an access token refreshes: %+v", got)
	}
	s.accepted(t, third.Access, http.StatusOK)
	s.deniesElsewhere(t, third)
	// Tokens of another tenant have no access.
	if status, _ := s.api(t, 0, stranger.token, "POST", "/api/buckets", `{"name":"Carols own"}`); status != http.StatusOK {
		t.Fatalf("a bucket of another tenant: %d", status)
	}
	if _, body := s.uses(t, 0, third.Access); strings.Contains(body, "Carols own") || !strings.Contains(body, "General") {
		t.Errorf("an app of alice's sees %s", body)
	}
	if got := p.refresh(second.Refresh); got.Error != "invalid_grant" {
		t.Errorf("a refresh token used twice: %+v", got)
	}
	s.accepted(t, third.Access, http.StatusUnauthorized)

	last := p.connect(v)
	s.accepted(t, last.Access, http.StatusOK)
	revoke := func(token, client string, want int) {
		t.Helper()
		form := url.Values{"token": {token}, "client_id": {client}}.Encode()
		if status, body := s.send(t, 0, "/revoke", form, "Content-Type", "application/x-www-form-urlencoded"); status != want {
			t.Errorf("revoke: %d %s, want %d", status, body, want)
		}
	}
	revoke(last.Refresh, other.id, http.StatusOK)
	revoke("mnr_unknown", p.id, http.StatusOK)
	revoke("", p.id, http.StatusBadRequest)
	revoke(last.Refresh, "nobody", http.StatusUnauthorized)
	revoke(last.Refresh, "\x00", http.StatusUnauthorized)
	revoke(last.Refresh, "", http.StatusBadRequest)
	s.accepted(t, last.Access, http.StatusOK)
	revoke(last.Refresh, p.id, http.StatusOK)
	s.accepted(t, last.Access, http.StatusUnauthorized)
}

// deniesElsewhere: only the access token is valid, and only at /mcp.
func (s *site) deniesElsewhere(t *testing.T, given pair) {
	t.Helper()
	for _, path := range []string{"/api/buckets", "/api/v2/memory", "/api/export"} {
		if status, body := s.api(t, 0, given.Access, "GET", path, ""); status != http.StatusUnauthorized {
			t.Errorf("GET %s with an app's access: %d %s", path, status, body)
		}
	}
	if status, _ := s.uses(t, 0, given.Refresh); status != http.StatusUnauthorized {
		t.Errorf("a refresh token at /mcp: %d", status)
	}
	for token, want := range map[string]string{"": "", given.Refresh: `, error="invalid_token"`} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.urls[1]+"/mcp", strings.NewReader(listBuckets))
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		want := `Bearer resource_metadata="` + s.urls[0] + `/.well-known/oauth-protected-resource/mcp", scope="memory"` + want
		if got := res.Header.Get("WWW-Authenticate"); got != want || res.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s with %q, want %q", res.Status, got, want)
		}
	}
}

// revokesAppsEverywhere: a new password, a removed user or a disconnect revokes
// access on every replica immediately; suspension only denies it.
func revokesAppsEverywhere(t *testing.T, s *site, _ *browser) {
	for name, tc := range map[string]struct {
		end  func(t *testing.T, u *user, v visitor)
		want int
	}{
		"new password": {func(t *testing.T, u *user, _ visitor) { s.issue(t, *u, 2) }, http.StatusUnauthorized},
		"user removed": {func(t *testing.T, u *user, _ visitor) {
			listed := u.spec.Users
			u.spec.Users = nil
			s.apply(t, u.spec)
			u.spec.Users = listed
			s.apply(t, u.spec)
		}, http.StatusUnauthorized},
		"tenant suspended": {func(t *testing.T, u *user, _ visitor) {
			u.spec.Suspended = true
			s.apply(t, u.spec)
		}, http.StatusForbidden},
		"tenant retired": {func(t *testing.T, u *user, _ visitor) {
			if _, err := s.db.Retire(t.Context(), u.spec.ID, tenant.Retain); err != nil {
				t.Fatal(err)
			}
		}, http.StatusUnauthorized},
		"account erased": {func(t *testing.T, _ *user, v visitor) {
			if status, body := v.post(t, "/account/erase", url.Values{"confirm": {"delete everything"}}); status != http.StatusOK {
				t.Fatalf("erase: %d %s", status, body)
			}
		}, http.StatusUnauthorized},
		"password replaced by the user": {func(t *testing.T, _ *user, v visitor) {
			if status, _ := v.post(t, "/connect/password", url.Values{"confirmed": {"yes"}}); status != http.StatusOK {
				t.Fatalf("replace the password: %d", status)
			}
		}, http.StatusUnauthorized},
		"token replaced": {func(t *testing.T, _ *user, v visitor) {
			if status, _ := v.post(t, "/connect/token", url.Values{"confirmed": {"yes"}}); status != http.StatusOK {
				t.Fatalf("regenerate: %d", status)
			}
		}, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			alice := s.newTenant(t, nil, "alice")[0]
			v := s.signedIn(t, 0, alice)
			p := s.register(t, "<b>Raw</b> app")
			given := p.connect(v)
			s.accepted(t, given.Access, http.StatusOK)
			tc.end(t, &alice, v)
			s.accepted(t, given.Access, tc.want)
			want := map[int]pair{http.StatusOK: {status: http.StatusOK}, http.StatusForbidden: {status: http.StatusForbidden, Error: "access_denied"},
				http.StatusUnauthorized: {status: http.StatusBadRequest, Error: "invalid_grant"}}[tc.want]
			if got := p.refresh(given.Refresh); got.status != want.status {
				t.Errorf("refreshed: status = %v, want %v", got.status, want.status)
			} else if got.Error != want.Error {
				t.Errorf("refreshed: Error = %v, want %v", got.Error, want.Error)
			}
			if tc.want != http.StatusForbidden {
				return
			}
			alice.spec.Suspended = false
			s.apply(t, alice.spec)
			if got := p.refresh(given.Refresh); got.status != http.StatusOK {
				t.Errorf("refreshed when it waits no longer: %+v", got)
			}
		})
	}
}

// countsRefreshes: a refresh counts toward the tenant's rate limit. A denied refresh
// does not consume the token.
func countsRefreshes(t *testing.T, s *site, _ *browser) {
	alice := s.newTenant(t, func(spec *tenant.Spec) { spec.Quota.RequestsPerMinute = 20 }, "alice")[0]
	p := s.register(t, "Busy")
	given := p.connect(s.signedIn(t, 0, alice))
	got := given
	for n := 0; got.status == http.StatusOK; n++ {
		if n > 60 { // those of three minutes
			t.Fatal("refreshed 60 times, of 20 requests per minute")
		}
		given = got
		got = p.refresh(given.Refresh)
	}
	if got.status != http.StatusTooManyRequests || got.Error != "temporarily_unavailable" || got.retryAfter == "" {
		t.Errorf("one too many: %+v", got)
	}
	alice.spec.Quota.RequestsPerMinute = 1000
	s.apply(t, alice.spec)
	if got := p.refresh(given.Refresh); got.status != http.StatusOK {
		t.Errorf("refreshed within the limit: %+v", got)
	}
}

// losesNoToken: a token is not replaced if the page cannot be rendered.
func losesNoToken(t *testing.T, s *site, _ *browser) {
	alice := s.newTenant(t, nil, "alice")[0]
	v := s.signedIn(t, 0, alice)
	s.grantsUnavailable.Store(alice.Scope, true)
	if status, body := v.post(t, "/connect/token", url.Values{"confirmed": {"yes"}}); status != http.StatusServiceUnavailable {
		t.Errorf("regenerated while grants cannot be listed: %d %s", status, body)
	}
	for replica := range s.urls {
		if status, _ := s.api(t, replica, alice.token, "GET", "/api/buckets", ""); status != http.StatusOK {
			t.Errorf("the token there was: %d", status)
		}
	}
	s.grantsUnavailable.Delete(alice.Scope)
	if status, body := v.post(t, "/connect/token", url.Values{"confirmed": {"yes"}}); status != http.StatusOK || !strings.Contains(body, "mn_") {
		t.Errorf("regenerated afterwards: %d %s", status, body)
	}
}

// allowsAnAppOfAnExternalUser: sign-in with an identity provider returns to the
// consent page; access ends when the tenant no longer admits the user.
func allowsAnAppOfAnExternalUser(t *testing.T, s *site, _ *browser) {
	u := s.newTenant(t, s.withDomain("umbrella.test"), "alice")[0]
	v, p := s.visitor(t, 0), s.register(t, "Lab notes")
	status, where := v.signInAt(t, "ada@umbrella.test", p.request())
	if status != http.StatusSeeOther {
		t.Fatalf("signed in: status = %d, want %d", status, http.StatusSeeOther)
	}
	if where != p.request() {
		t.Fatalf("redirected to %s, want %s", where, p.request())
	}
	given := p.connect(v)
	s.accepted(t, given.Access, http.StatusOK)
	u.spec.OIDC = tenant.OIDC{}
	s.apply(t, u.spec)
	s.accepted(t, given.Access, http.StatusUnauthorized)
}

// limitsRegistration: registrations are validated and limited per client address,
// which only trusted proxies can set.
func limitsRegistration(t *testing.T, s *site, _ *browser) {
	for body, want := range map[string]string{
		`{"redirect_uris":["http://evil.test/"]}`:    "invalid_redirect_uri",
		`{"redirect_uris":["javascript:alert(1)"]}`:  "invalid_redirect_uri",
		`{"redirect_uris":["x-safari-https://a.b"]}`: "invalid_redirect_uri",
		`{}`: "invalid_redirect_uri",
		`{"redirect_uris":["https://a.test/"],"grant_types":["client_credentials"]}`: "invalid_client_metadata",
		`[]`: "invalid_client_metadata",
		`{`:  "invalid_client_metadata",
		`{"client_name":"` + strings.Repeat("x", 70<<10) + `","redirect_uris":["https://"]}`: "invalid_request",
	} {
		if status, got := s.send(t, 0, "/register", body, "Content-Type", "application/json"); status/100 != 4 || !strings.Contains(got, `"error":"`+want+`"`) {
			t.Errorf("register %.80s: %d %s, want %s", body, status, got, want)
		}
	}
	register := func(replica int, from string) int {
		t.Helper()
		status, _ := s.send(t, replica, "/register", `{"redirect_uris":["https://a.test/"]}`, "Content-Type", "application/json", "X-Forwarded-For", from)
		return status
	}
	for n := range 30 {
		if status := register(1, "192.0.2.77"); status != http.StatusCreated {
			t.Fatalf("registration %d: %d", n, status)
		}
	}
	for from, want := range map[string]int{"192.0.2.77": http.StatusTooManyRequests, "192.0.2.1, 192.0.2.77": http.StatusTooManyRequests, "192.0.2.78": http.StatusCreated} {
		if status := register(1, from); status != want {
			t.Errorf("one more from %s: %d, want %d", from, status, want)
		}
	}
	if status := register(0, "192.0.2.77"); status != http.StatusCreated {
		t.Errorf("a replica that trusts nobody believed where it came from: %d", status)
	}
	for path, want := range map[string]string{
		"/.well-known/oauth-protected-resource/mcp": fmt.Sprintf(`"authorization_servers":[%q]`, s.urls[0]),
		"/.well-known/oauth-authorization-server":   fmt.Sprintf(`"issuer":%q`, s.urls[0]),
	} {
		if status, body := s.visitor(t, 1).get(t, path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("GET %s: %d %s", path, status, body)
		}
	}
}
