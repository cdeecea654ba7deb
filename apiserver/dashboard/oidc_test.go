package dashboard_test

import (
	"bufio"
	"context"
	"html"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/apiserver/dashboard"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// chooseIssuer chooses the URL of the identity provider.
func (s *site) chooseIssuer(t *testing.T) {
	t.Helper()
	s.issuer = "http://" + testkit.FreeAddress(t)
}

// provider returns the configuration of the identity provider.
func (s *site) provider() *dashboard.Provider {
	return &dashboard.Provider{Name: "Example ID", Issuer: s.issuer, ClientID: "mnemo", ClientSecret: "secret", PlatformAdministrators: []string{"Ops@platform.test"}}
}

// startProvider starts a certified identity provider that redirects to the replicas.
func (s *site) startProvider(t *testing.T) {
	t.Helper()
	u, err := url.Parse(s.issuer)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.Background(), testkit.OIDCProvider(t), u.Port(), s.urls[0]+"/sign-in/callback", s.urls[1]+"/sign-in/callback")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "listening") {
			go func() { _, _ = io.Copy(io.Discard, out) }() // or it would stop at a full pipe
			return
		}
	}
	t.Fatal("the identity provider ended before it listened")
}

// signsInExternalUsers: users of an identity provider are created at their first
// sign-in and found at the next, in the tenant of their domain.
func signsInExternalUsers(t *testing.T, s *site, _ *browser) {
	listed := s.newTenant(t, s.withDomain("acme.test"), "alice")
	ann := s.visitor(t, 0)
	if status, where := ann.signInAt(t, "ann@acme.test", "/connect"); status != http.StatusSeeOther || where != "/connect" {
		t.Fatalf("the first sign-in ended with %d at %q, want /connect", status, where)
	}
	if status, body := ann.get(t, "/memories"); status != http.StatusOK || !strings.Contains(body, "ann@acme.test") {
		t.Errorf("signed in: %d, or no address on the page", status)
	}
	ann.post(t, "/memories", url.Values{"text": {"2026-05-01 Ann keeps bees."}})
	users := s.externalUsers(t, listed[0].spec)

	again := s.visitor(t, 1)
	again.signInAt(t, "ann@acme.test", "")
	if _, body := again.get(t, "/memories"); !strings.Contains(body, "Ann keeps bees") {
		t.Error("at the second sign-in, by another replica, the person finds nothing of the first")
	}
	if now := s.externalUsers(t, listed[0].spec); now != users || now != 1 {
		t.Errorf("%d people after the first sign-in, %d after the second, want 1", users, now)
	}

	// Never matched by address: the listed alice is a different user.
	s.visitor(t, 0).signInAt(t, "alice@acme.test", "")
	if now := s.externalUsers(t, listed[0].spec); now != 2 {
		t.Errorf("%d people after one with a listed user's name, want 2", now)
	}
}

// rejectsExternalUsers: no tenant for the domain, an unverified address, an exceeded
// quota, and a tenant that is suspended or no longer admits the domain.
func rejectsExternalUsers(t *testing.T, s *site, _ *browser) {
	u := s.newTenant(t, func(spec *tenant.Spec) {
		s.withDomain("globex.test")(spec)
		spec.Quota.Users = 2
	}, "alice")[0]
	denied := func(login, want string) {
		t.Helper()
		status, body := s.visitor(t, 0).signInAt(t, login, "")
		if status < 400 || !strings.Contains(html.UnescapeString(body), want) {
			t.Errorf("%s: %d, want a page that says %q", login, status, want)
		}
	}
	denied("eve@nowhere.test", "Sign-in is not enabled for nowhere.test")
	denied("unverified@globex.test", "has no verified email address")
	dan := s.visitor(t, 0)
	if status, _ := dan.signInAt(t, "dan@globex.test", ""); status != http.StatusSeeOther {
		t.Fatalf("dan: %d", status)
	}
	denied("erin@globex.test", "User quota exceeded (limit 2)")

	taken := s.newTenant(t, s.withDomain("globex.test"))
	if len(taken) != 0 {
		t.Fatal("a tenant without listed users has some")
	}
	u.spec.Suspended = true
	s.apply(t, u.spec)
	denied("dan@globex.test", "suspended")
	u.spec.Suspended = false
	s.apply(t, u.spec)
	dan.signInAt(t, "dan@globex.test", "")
	u.spec.OIDC.Domains = nil
	s.apply(t, u.spec)
	if status, _ := dan.get(t, "/memories"); status != http.StatusSeeOther {
		t.Errorf("a session survives the removal of its user's domain: %d", status)
	}
	if n := s.externalUsers(t, u.spec); n != 0 {
		t.Errorf("%d external users of a tenant without domains", n)
	}
}

// rejectsForgedRedirects: another browser's sign-in, an old state, an unknown code.
func rejectsForgedRedirects(t *testing.T, s *site, _ *browser) {
	s.newTenant(t, s.withDomain("initech.test"))
	v := s.visitor(t, 0)
	if status, body := v.get(t, "/sign-in/callback?code=x&state=y"); status != http.StatusBadRequest || !strings.Contains(body, "try again") {
		t.Errorf("an answer nobody asked for: %d", status)
	}
	_, callback := v.walk(t, "peter@initech.test", "")
	other := s.visitor(t, 0)
	other.get(t, "/sign-in/with/0")
	if status, _ := other.get(t, callback); status != http.StatusBadRequest {
		t.Errorf("another browser's answer: %d", status)
	}
	u, err := url.Parse(callback)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("code", "forged")
	if status, _ := v.get(t, u.Path+"?"+q.Encode()); status != http.StatusBadRequest {
		t.Errorf("a forged code: %d", status)
	}
	if status, _ := v.get(t, "/memories"); status != http.StatusSeeOther {
		t.Errorf("somebody is signed in after that: %d", status)
	}
	v.get(t, "/sign-in/with/0")
	if status, body := v.get(t, "/sign-in/callback?error=access_denied&iss="+url.QueryEscape(s.issuer)+"&state="+v.state(t)); status != http.StatusForbidden || !strings.Contains(body, "denied the sign-in") {
		t.Errorf("a person who changed their mind: %d", status)
	}
}

// showsProviders: sign-in with a provider in a browser.
func showsProviders(t *testing.T, s *site, b *browser) {
	s.newTenant(t, s.withDomain("hooli.test"))
	tab := b.newContext(t, s.urls[0])
	tab.open("/")
	tab.looks("sign-in-oidc")
	tab.expects("fonts.googleapis.com") // the provider's own page
	tab.expects("favicon.ico")
	tab.click("a.provider")
	tab.fill("input[name=login]", "gavin@hooli.test")
	tab.fill("input[name=password]", "any")
	tab.click("button[type=submit]")
	tab.sees("Authorize")
	tab.click("button[type=submit]")
	tab.at("/memories")
	tab.sees("gavin@hooli.test")
	tab.click(".me form button")
	tab.at("/sign-in")
	tab.open("/memories")
	tab.at("/sign-in")
}

// withDomain makes a tenant admit users of a domain.
func (s *site) withDomain(domain string) func(*tenant.Spec) {
	return func(spec *tenant.Spec) { spec.OIDC = tenant.OIDC{Issuer: s.issuer, Domains: []string{domain}} }
}

// externalUsers returns the number of external users of a tenant.
func (s *site) externalUsers(t *testing.T, spec tenant.Spec) int64 {
	t.Helper()
	stored, err := s.db.Apply(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return stored.ExternalUsers
}

var redirectForm = regexp.MustCompile(`action="([^"]+)"`)

// signInAt signs in with the provider and returns the status of the final response,
// and its redirect or body.
func (v visitor) signInAt(t *testing.T, login, next string) (status int, where string) {
	t.Helper()
	_, callback := v.walk(t, login, next)
	return v.follow(t, callback)
}

// walk follows the provider's pages until it redirects back.
func (v visitor) walk(t *testing.T, login, next string) (status int, callback string) {
	t.Helper()
	return v.walkFrom(t, "/sign-in/with/0?next="+url.QueryEscape(next), login)
}

// walkFrom is walk from the path that redirects to the provider.
func (v visitor) walkFrom(t *testing.T, path, login string) (status int, callback string) {
	t.Helper()
	where := v.url + path
	for range 12 {
		var body string
		if status, body = v.follow(t, where); status == http.StatusSeeOther || status == http.StatusFound {
			if where = body; strings.Contains(where, "/sign-in/callback?") {
				u, err := url.Parse(where)
				if err != nil {
					t.Fatal(err)
				}
				return status, u.RequestURI()
			}
			continue
		}
		form := redirectForm.FindStringSubmatch(body)
		if form == nil {
			t.Fatalf("the provider shows %d %s", status, body)
		}
		values := url.Values{"prompt": {"consent"}}
		if strings.Contains(body, `name="login"`) {
			values = url.Values{"prompt": {"login"}, "login": {login}, "password": {"any"}}
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, html.UnescapeString(form[1]), strings.NewReader(values.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		res, err := v.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		where = res.Header.Get("Location")
	}
	t.Fatal("the provider does not send the browser back")
	return 0, ""
}

// follow requests a URL and returns its redirect or body.
func (v visitor) follow(t *testing.T, where string) (status int, next string) {
	t.Helper()
	if strings.HasPrefix(where, "/") {
		where = v.url + where
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, where, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html")
	res, err := v.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if to, err := res.Location(); err == nil {
		if strings.HasPrefix(to.String(), v.url+"/") && !strings.Contains(to.Path, "callback") {
			return res.StatusCode, to.RequestURI()
		}
		return res.StatusCode, to.String()
	}
	text := new(strings.Builder)
	if _, err := bufio.NewReader(res.Body).WriteTo(text); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, text.String()
}

// state returns the state of the sign-in in progress.
func (v visitor) state(t *testing.T) string {
	t.Helper()
	_, where := v.follow(t, "/sign-in/with/0")
	u, err := url.Parse(where)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get("state")
}
