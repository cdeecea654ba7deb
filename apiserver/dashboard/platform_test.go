package dashboard_test

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/apiserver/dashboard"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// overseesThePlatform: an administrator of the platform sees names and numbers of all tenants,
// which of them need attention and what to do, and no texts of users. Nobody else sees the
// page, and the session opens no other page.
func overseesThePlatform(t *testing.T, s *site, b *browser) {
	alice := s.newTenant(t, func(spec *tenant.Spec) {
		spec.Name, spec.DisplayName, spec.Quota.Memories = "crowded-"+strings.Repeat("acme-", 6)+"tenant", "株式会社"+strings.Repeat("Globex", 8), 1
	}, "alice")[0]
	s.newTenant(t, func(spec *tenant.Spec) { spec.Name, spec.Suspended = "crowded-not", true })
	s.store(t, alice, "2025-05-09 Alice keeps a secret.")
	s.refusesOnPlatform(t, alice)

	tab := b.newContext(t, s.urls[0])
	tab.expects("status of 40")
	tab.expects("fonts.googleapis.com") // the provider's own page
	tab.expects("favicon.ico")
	tab.open("/platform")
	tab.at("/platform/sign-in")
	tab.looks("platform-sign-in")
	tab.click("a.provider")
	tab.fill("input[name=login]", "ops@platform.test")
	tab.fill("input[name=password]", "any")
	tab.click("button[type=submit]")
	tab.sees("Authorize")
	tab.click("button[type=submit]")
	tab.at("/platform")
	tab.sees("ops@platform.test")
	tab.fill("input[name=q]", "crowded")
	tab.choose("select[name=sort]", "name")
	tab.click(".filters button.primary")
	tab.until(`document.querySelectorAll("main .card").length === 2`, "find two tenants")
	for _, text := range []string{"suspended", "near quota", "1 of 1 (quota reached)", "0 of 1,000", "株式会社"} {
		tab.sees(text)
	}
	tab.seesNot("secret")
	tab.eval(`document.querySelectorAll("details").forEach((d) => d.open = true)`, nil)
	tab.sees(`kubectl -n default patch tenant ` + alice.name.Tenant + ` --type=merge -p '{"spec":{"quota":{"memories":2}}}'`)
	tab.sees("kubectl -n default describe tenant crowded-not")
	tab.looksEverywhere("visual-platform")
	tab.speaks("german-platform", "/platform?q=crowded")
	tab.speaks("german-platform-empty", "/platform?show=retained&q=kjqwx")
	tab.inLanguage("en")
	tab.open("/platform?show=everything")
	tab.sees("Show must be near-quota, unhealthy or retained.")
	tab.open("/platform?show=near-quota&q=crowded")
	tab.until(`document.querySelectorAll("main .card").length === 1`, "find the tenant near its quota")
	tab.open("/memories")
	tab.at("/sign-in")
	tab.open("/platform")
	tab.click(".me form button")
	tab.at("/platform/sign-in")
	tab.open("/platform")
	tab.at("/platform/sign-in")
}

// refusesOnPlatform: users of tenants, users of the provider who are not listed, former
// administrators and forms of other sites are refused, and neither session is the other one.
func (s *site) refusesOnPlatform(t *testing.T, u user) {
	t.Helper()
	wantNone := func(v visitor, why string) {
		t.Helper()
		if status, page := v.get(t, "/platform"); status != http.StatusSeeOther || strings.Contains(page, u.name.Tenant) {
			t.Errorf("%s: GET /platform: %d, want a redirect", why, status)
		}
	}
	member := s.visitor(t, 0)
	member.signIn(t, u)
	wantNone(member, "a user of a tenant")
	member.renameCookie(t, "mnemo_session", "mnemo_platform")
	wantNone(member, "a user's session as that of the platform")

	eve := s.visitor(t, 0)
	_, callback := eve.walkFrom(t, "/platform/sign-in/0", "eve@platform.test")
	if status, page := eve.get(t, callback); status != http.StatusForbidden || !strings.Contains(page, "Eve@platform.test is not a platform administrator") || strings.Contains(page, "name=\"password\"") {
		t.Errorf("a user who is not listed: %d %s", status, page)
	}
	wantNone(eve, "a user who is not listed")
	if status, _ := s.visitor(t, 0).get(t, "/platform/sign-in/1"); status != http.StatusNotFound {
		t.Errorf("an unknown provider: %d", status)
	}

	for why, who := range map[string]tenant.PlatformAdministrator{
		"a former administrator": {Issuer: s.issuer, Subject: "1", Email: "former@platform.test"}, "another provider": {Issuer: "https://id.test", Subject: "1", Email: "ops@platform.test"},
	} {
		v := s.visitor(t, 0)
		secret := rand.Text()
		if err := s.db.SignInPlatform(t.Context(), tenant.PlatformSignIn{PlatformAdministrator: who, Session: tenant.HashSecret(secret), Lifetime: time.Hour}); err != nil {
			t.Fatal(err)
		}
		v.setCookie(t, "mnemo_platform", secret)
		wantNone(v, why)
	}

	ops := s.visitor(t, 1)
	ops.setCookie(t, "mnemo_platform", "unknown")
	wantNone(ops, "an unknown session")
	_, callback = ops.walkFrom(t, "/platform/sign-in/0", "ops@platform.test")
	if status, where := ops.follow(t, callback); status != http.StatusSeeOther || where != "/platform" {
		t.Fatalf("an administrator: %d %s", status, where)
	}
	for path, want := range map[string]int{"/platform": 200, "/platform?q=%00": 400, "/platform?sort=x": 400, "/platform?page=99999999999999": 200, "/memories": 303, "/admin": 303} {
		if status, page := ops.get(t, path); status != want || strings.Contains(page, "secret") {
			t.Errorf("GET %s of a platform administrator: %d, want %d", path, status, want)
		}
	}
	if status, _ := ops.post(t, "/platform/sign-out", nil, "Sec-Fetch-Site", "cross-site"); status != http.StatusForbidden {
		t.Errorf("signed out by another site: %d", status)
	}
	ops.renameCookie(t, "mnemo_platform", "mnemo_session")
	if status, _ := ops.get(t, "/memories"); status != http.StatusSeeOther {
		t.Errorf("the session of the platform as that of a user: %d", status)
	}
}

// setCookie sets a cookie of the site.
func (v visitor) setCookie(t *testing.T, name, value string) {
	t.Helper()
	u, err := url.Parse(v.url)
	if err != nil {
		t.Fatal(err)
	}
	v.Jar.SetCookies(u, []*http.Cookie{{Name: name, Value: value, Path: "/"}})
}

// renameCookie sends the value of a cookie also as another one.
func (v visitor) renameCookie(t *testing.T, from, to string) {
	t.Helper()
	u, err := url.Parse(v.url)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range v.Jar.Cookies(u) {
		if c.Name == from {
			v.setCookie(t, to, c.Value)
			return
		}
	}
	t.Fatalf("no cookie %s", from)
}

// TestPlatformAuthentication: a platform administrator has a verified address, and the provider
// authenticated them within the lifetime of a session.
func TestPlatformAuthentication(t *testing.T) {
	t.Parallel()
	s := newClaimsSite(t, nil, func(p *dashboard.Provider) { p.PlatformAdministrators = []string{"ops@platform.test"} })
	ago := func(d time.Duration) int64 { return time.Now().Add(-d).Unix() }
	for name, tt := range map[string]struct {
		claims map[string]any
		status int
	}{
		"Recent":     {map[string]any{"email": "ops@platform.test", "auth_time": ago(7 * time.Hour)}, http.StatusSeeOther},
		"OtherCase":  {map[string]any{"email": "OPS@platform.test", "auth_time": ago(0)}, http.StatusSeeOther},
		"Old":        {map[string]any{"email": "ops@platform.test", "auth_time": ago(9 * time.Hour)}, http.StatusForbidden},
		"Unknown":    {map[string]any{"email": "ops@platform.test"}, http.StatusForbidden},
		"Unverified": {map[string]any{"email": "ops@platform.test", "email_verified": false, "auth_time": ago(0)}, http.StatusForbidden},
		"NotListed":  {map[string]any{"email": "ann@acme.test", "auth_time": ago(0)}, http.StatusForbidden},
	} {
		s.set(tt.claims)
		v := s.visitor(t)
		if status, where := s.signInFrom(t, v, "/platform/sign-in/0", ""); status != tt.status || status == http.StatusSeeOther && where != "/platform" {
			t.Errorf("%s: %d %.300s, want %d", name, status, where, tt.status)
		}
		want := map[int]int{http.StatusSeeOther: http.StatusOK, http.StatusForbidden: http.StatusSeeOther}[tt.status]
		if status, _ := v.get(t, "/platform"); status != want {
			t.Errorf("%s: GET /platform: %d, want %d", name, status, want)
		}
	}
	s = newClaimsSite(t, nil, nil)
	for _, path := range []string{"/platform", "/platform/sign-in", "/platform/sign-in/0"} {
		if status, _ := s.visitor(t).get(t, path); status != http.StatusNotFound {
			t.Errorf("GET %s without administrators: %d, want 404", path, status)
		}
	}
}
