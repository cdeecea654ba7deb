package dashboard_test

import (
	"crypto/rand"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/mnemo-dev/mnemo/apiserver/dashboard"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// link creates a one-time sign-in link and returns its code.
func (s *site) link(t *testing.T, u user) string {
	t.Helper()
	code, err := tenant.NewSession(0, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	err = s.db.CreateSignInLink(t.Context(), tenant.SignInLink{Scope: u.Scope, Secret: tenant.HashSecret(code), Lifetime: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// signsInWithLink: opening a one-time link signs in, with and without scripts. The second
// time it shows an error, and the code does not stay in the address.
func signsInWithLink(t *testing.T, s *site, b *browser) {
	alice := s.newTenant(t, nil, "alice")[0]
	code := s.link(t, alice)
	tab := b.newContext(t, s.urls[0])
	tab.expects("status of 401")
	tab.open(dashboard.PathLink + "#" + code)
	tab.at("/memories")
	tab.sees("alice")
	tab.do(chromedp.NavigateBack())
	tab.until("!location.href.includes("+quote(code)+")", "not see the code in the history")

	other := b.newContext(t, s.urls[1])
	other.expects("status of 401")
	other.open(dashboard.PathLink + "#" + code)
	other.sees("This link has been used or has expired")
	other.looks("sign-in-link")

	v := s.visitor(t, 0)
	if status, page := v.get(t, dashboard.PathLink); status != 200 || !strings.Contains(page, `name="code"`) {
		t.Errorf("page of a link: %d, want a form", status)
	}
	if status, _ := v.post(t, dashboard.PathLink, url.Values{"code": {" " + s.link(t, alice) + "\n"}}); status != 303 {
		t.Errorf("code in the form: %d, want 303", status)
	}
	if status, _ := v.get(t, "/memories"); status != 200 {
		t.Errorf("memories after the link: %d, want 200", status)
	}
	used := s.link(t, alice)
	for _, attempt := range []string{"first", "second"} {
		if status, _ := v.post(t, dashboard.PathLink, url.Values{"code": {used}}); status != 303 {
			t.Errorf("code sent the %s time while signed in: %d, want 303", attempt, status)
		}
	}
	if status, _ := v.post(t, dashboard.PathLink, url.Values{"code": {s.link(t, alice)}}, "Sec-Fetch-Site", "cross-site"); status != 403 {
		t.Errorf("form of another site: %d, want 403", status)
	}
}
