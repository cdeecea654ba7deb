package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// endsSessions: a new password, removing the user and suspending the tenant each end
// sessions immediately on every replica, permanently.
func endsSessions(t *testing.T, s *site, _ *browser) {
	for name, end := range map[string]func(t *testing.T, u *user){
		"new password": func(t *testing.T, u *user) {
			u.token, u.password = s.issue(t, *u, 2)
		},
		"user removed": func(t *testing.T, u *user) {
			listed := u.spec.Users
			u.spec.Users = nil
			s.apply(t, u.spec)
			u.spec.Users = listed
			s.apply(t, u.spec)
		},
		"tenant suspended": func(t *testing.T, u *user) {
			u.spec.Suspended = true
			s.apply(t, u.spec)
			if status := s.visitor(t, 0).signIn(t, *u); status != http.StatusForbidden {
				t.Errorf("signing in to a suspended tenant: %d", status)
			}
			u.spec.Suspended = false
			s.apply(t, u.spec)
		},
	} {
		alice := s.newTenant(t, nil, "alice")[0]
		visitors := []visitor{s.visitor(t, 0), s.visitor(t, 1)}
		for _, v := range visitors {
			if status := v.signIn(t, alice); status != http.StatusSeeOther {
				t.Fatalf("sign in: %d", status)
			}
			if status, body := v.get(t, "/memories"); status != http.StatusOK {
				t.Fatalf("%s: signed in: %d %s", name, status, body)
			}
		}
		end(t, &alice)
		for _, v := range visitors {
			if status, _ := v.get(t, "/memories"); status != http.StatusSeeOther {
				t.Errorf("session still valid after %s: %d", name, status)
			}
		}
		if status := visitors[0].signIn(t, alice); status != http.StatusSeeOther {
			t.Errorf("sign-in after %s: %d", name, status)
		}
	}
}

// replacesSessions: signing in again, as before a dangerous action, ends the session that
// the browser had. Otherwise a stolen cookie would survive, and no sign-out could end it.
func replacesSessions(t *testing.T, s *site, _ *browser) {
	users := s.newTenant(t, nil, "alice", "bob")
	for _, next := range users {
		v := s.signedIn(t, 0, users[0])
		stolen := s.visitor(t, 1)
		address, err := url.Parse(s.urls[0])
		if err != nil {
			t.Fatal(err)
		}
		other, err := url.Parse(s.urls[1])
		if err != nil {
			t.Fatal(err)
		}
		stolen.Jar.SetCookies(other, v.Jar.Cookies(address))
		if status, _ := stolen.get(t, "/memories"); status != http.StatusOK {
			t.Fatalf("with the cookie: %d", status)
		}
		if status, _ := v.post(t, "/sign-in", url.Values{"name": {next.name.String()}, "password": {"wrong"}}); status != http.StatusUnauthorized {
			t.Errorf("wrong password: %d", status)
		}
		if status, _ := stolen.get(t, "/memories"); status != http.StatusOK {
			t.Errorf("after a wrong password: %d, want that the session continues", status)
		}
		if status := v.signIn(t, next); status != http.StatusSeeOther {
			t.Fatalf("sign in again: %d", status)
		}
		if status, _ := stolen.get(t, "/memories"); status != http.StatusSeeOther {
			t.Errorf("the session before signing in as %s is still valid: %d", next.name, status)
		}
		if status, _ := v.get(t, "/memories"); status != http.StatusOK {
			t.Errorf("the new session: %d", status)
		}
	}
}

func (s *site) apply(t *testing.T, spec tenant.Spec) {
	t.Helper()
	if _, err := s.db.Apply(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
}

// rejectsForeignForms: cross-site forms are rejected, and cookies have the required
// attributes.
func rejectsForeignForms(t *testing.T, s *site, _ *browser) {
	alice := s.newTenant(t, nil, "alice")[0]
	v := s.visitor(t, 0)
	credentials := url.Values{"name": {alice.name.String()}, "password": {alice.password}}
	host := strings.TrimPrefix(s.urls[0], "http://")
	for name, test := range map[string]struct {
		headers []string
		want    int
	}{
		"cross-site":                        {[]string{"Sec-Fetch-Site", "cross-site"}, 403},
		"same-site":                         {[]string{"Sec-Fetch-Site", "same-site"}, 403},
		"direct navigation":                 {[]string{"Sec-Fetch-Site", "none"}, 403},
		"other origin":                      {[]string{"Sec-Fetch-Site", "", "Origin", "https://evil.test"}, 403},
		"no origin":                         {[]string{"Sec-Fetch-Site", ""}, 403},
		"null origin":                       {[]string{"Sec-Fetch-Site", "", "Origin", "null"}, 403},
		"own origin without Sec-Fetch-Site": {[]string{"Sec-Fetch-Site", "", "Origin", "http://" + host}, 303},
		"same-origin":                       {nil, 303},
	} {
		if status, body := v.post(t, "/sign-in", credentials, test.headers...); status != test.want {
			t.Errorf("a form from %s: %d %s, want %d", name, status, body, test.want)
		}
	}
	if status, _ := v.post(t, "/memories", url.Values{"text": {"x"}}, "Content-Type", "text/plain"); status != http.StatusUnsupportedMediaType {
		t.Errorf("a form that is none: %d", status)
	}
	if status, _ := v.post(t, "/memories", url.Values{"text": {strings.Repeat("x", 300<<10)}}); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a form that is too long: %d", status)
	}

	for name, test := range map[string]struct {
		proto, cookie string
		secure        bool
	}{
		"plain": {"http", "mnemo_session", false}, "TLS": {"https", "__Host-mnemo_session", true},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.urls[0]+"/sign-in", strings.NewReader(credentials.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", test.proto+"://"+host)
		r.Header.Set("X-Forwarded-Proto", test.proto)
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		c := res.Cookies()[0]
		if c.Name != test.cookie || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Secure != test.secure || c.Path != "/" || c.Expires.Before(time.Now()) {
			t.Errorf("%s: cookie %s", name, c)
		}
		for header, want := range map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin"} {
			if res.Header.Get(header) != want {
				t.Errorf("%s: %s is %q", name, header, res.Header.Get(header))
			}
		}
		if policy := res.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("content security policy %q", policy)
		}
	}
}

// throttles: after ten wrong passwords from an address, sign-in to the account from there
// is delayed on every replica, whether or not the account exists; other accounts are not
// affected.
func throttles(t *testing.T, s *site, _ *browser) {
	alice := s.newTenant(t, nil, "alice")[0]
	wrong := alice
	wrong.password = "wrong"
	nobody := wrong
	nobody.name.User = "nobody"
	for _, u := range []user{wrong, nobody} {
		for i := range 10 {
			if status := s.visitor(t, i%2).signIn(t, u); status != http.StatusUnauthorized {
				t.Fatalf("wrong password %d of %s: %d", i, u.name, status)
			}
		}
		for replica := range s.urls {
			status, body := s.visitor(t, replica).post(t, "/sign-in", url.Values{"name": {u.name.String()}, "password": {u.password}})
			if status != http.StatusTooManyRequests || !strings.Contains(body, "Too many failed sign-ins; try again in 10 min.") {
				t.Errorf("the eleventh wrong password of %s: %d %s", u.name, status, body)
			}
		}
	}
	if status := s.visitor(t, 0).signIn(t, alice); status != http.StatusTooManyRequests {
		t.Errorf("the right password while throttled: %d", status)
	}
	if status := s.visitor(t, 0).signIn(t, s.newTenant(t, nil, "bob")[0]); status != http.StatusSeeOther {
		t.Errorf("another account: %d", status)
	}
}

// countsRequests: pages count toward the tenant's rate limit.
func countsRequests(t *testing.T, s *site, _ *browser) {
	alice := s.newTenant(t, func(spec *tenant.Spec) { spec.Quota.RequestsPerMinute = 0 }, "alice")[0]
	v := s.visitor(t, 0)
	v.signIn(t, alice)
	if status, body := v.get(t, "/memories"); status != http.StatusTooManyRequests || !strings.Contains(body, "rate limit exceeded") {
		t.Errorf("with no requests left: %d %s", status, body)
	}
}

// eventually retries until there is no complaint.
func eventually(t *testing.T, complaint func() string) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		text := complaint()
		if text == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(text)
		}
	}
}
