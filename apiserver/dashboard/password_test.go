package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// replacesPassword: the new password is shown once and signs in, the session in which it
// was created stays valid, and what began under the old password ends on every replica.
func replacesPassword(t *testing.T, s *site, b *browser) {
	alice := s.newTenant(t, nil, "alice")[0]
	elsewhere := s.signedIn(t, 1, alice)
	created := createdToken(t, elsewhere)
	client := s.register(t, "Notes")
	given := client.connect(elsewhere)
	for replica := range s.urls { // and both know it well
		if status, body := s.api(t, replica, created, "GET", "/api/buckets", ""); status != http.StatusOK {
			t.Fatalf("the created token: %d %s", status, body)
		}
	}
	s.accepted(t, given.Access, http.StatusOK)

	tab := b.newContext(t, s.urls[0])
	tab.expects("status of 40")
	tab.signIn(alice)
	tab.open("/connect")
	tab.sees("You sign in as " + alice.name.Tenant + "/alice.")
	tab.click("form[action='/connect/password'] button") // the box is not ticked
	tab.at("/connect")
	tab.seesNot("Your new password")
	tab.click("form[action='/connect/password'] input[type=checkbox]")
	tab.click("form[action='/connect/password'] button")
	tab.sees("Your new password")
	tab.until("document.activeElement.matches('[data-reveal]')", "have the password focused")
	tab.seesNot("Laptop")
	tab.seesNot("redirects to")
	var newPassword string
	tab.eval(`document.querySelector("#new-password").textContent`, &newPassword)
	tab.eval(`document.querySelector("#new-password").textContent = "4fYp0ZrVq8LwTn2KcXs6HbGd"`, nil)
	tab.looks("password-new")

	if status, _ := elsewhere.get(t, "/memories"); status != http.StatusSeeOther {
		t.Errorf("the other session: %d, want the sign-in page", status)
	}
	s.accepted(t, given.Access, http.StatusUnauthorized)
	for replica := range s.urls {
		eventually(t, func() string {
			if status, _ := s.api(t, replica, created, "GET", "/api/buckets", ""); status != http.StatusUnauthorized {
				return "the created token is still accepted"
			}
			return ""
		})
		if status, body := s.api(t, replica, alice.token, "GET", "/api/buckets", ""); status != http.StatusOK {
			t.Errorf("the API token: %d %s", status, body)
		}
	}
	tab.open("/connect")
	tab.at("/connect") // still signed in
	tab.seesNot(newPassword)
	tab.open("/activity")
	tab.sees("Created a new password")
	if status := s.visitor(t, 0).signIn(t, alice); status != http.StatusUnauthorized {
		t.Errorf("sign in with the old password: %d, want 401", status)
	}
	alice.password = newPassword
	s.signedIn(t, 0, alice)
}

// createdToken returns a token that a user created.
func createdToken(t *testing.T, v visitor) string {
	t.Helper()
	status, body := v.post(t, "/connect/tokens", url.Values{"name": {"Laptop"}, "scopes": {"read"}})
	_, after, found := strings.Cut(body, `id="new-token">`)
	token, _, _ := strings.Cut(after, "<")
	if status != http.StatusOK || !found {
		t.Fatalf("create a token: %d %s", status, body)
	}
	return token
}

// guardsPassword: replacing it needs a confirmation and a recent sign-in, and changes
// nobody else's. A password that cannot be shown is not replaced.
func guardsPassword(t *testing.T, s *site, _ *browser) {
	users := s.newTenant(t, nil, "alice", "bob")
	alice := users[0]
	v, bob := s.signedIn(t, 0, alice), s.signedIn(t, 1, users[1])
	confirmed := url.Values{"confirmed": {"yes"}}
	if status, body := v.post(t, "/connect/password", nil); status != http.StatusBadRequest || strings.Contains(body, "new-password") {
		t.Errorf("without confirmation: %d %.300s, want 400", status, body)
	}
	if status, body := v.post(t, "/connect/password", confirmed, "Sec-Fetch-Site", "cross-site"); status != http.StatusForbidden || strings.Contains(body, "new-password") {
		t.Errorf("from another site: %d %.300s, want 403", status, body)
	}
	s.grantsUnavailable.Store(alice.Scope, true)
	if status, _ := v.post(t, "/connect/password", confirmed); status != http.StatusServiceUnavailable {
		t.Errorf("while the page cannot be rendered: %d, want 503", status)
	}
	s.grantsUnavailable.Delete(alice.Scope)
	s.age(t, alice.Scope)
	if status, body := v.post(t, "/connect/password", confirmed); status != http.StatusSeeOther || strings.Contains(body, "new-password") {
		t.Errorf("signed in 11 minutes ago: %d %.300s, want the sign-in page", status, body)
	}
	v = s.signedIn(t, 0, alice) // the password is still the same
	status, body := v.post(t, "/connect/password", confirmed)
	if status != http.StatusOK || !strings.Contains(body, `id="new-password"`) {
		t.Fatalf("replace the password: %d %.300s", status, body)
	}
	if status, body := bob.get(t, "/connect"); status != http.StatusOK || strings.Contains(body, "new-password") {
		t.Errorf("bob's page: %d", status)
	}
	s.signedIn(t, 0, users[1])
}

// age lets the sign-ins of a user be 11 minutes old.
func (s *site) age(t *testing.T, scope tenant.Scope) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.database.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), "update sessions set authenticated_at = now() - interval '11 minutes' where tenant_id = $1 and user_id = $2", scope.Tenant, scope.User)
	if err != nil {
		t.Fatal(err)
	}
}
