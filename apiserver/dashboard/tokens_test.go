package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// managesTokens: a token is shown once, in the settings of each app, works with its scopes,
// and is listed and revoked.
func managesTokens(t *testing.T, s *site, b *browser) {
	alice := s.newTenant(t, nil, "alice")[0]
	tab := b.newContext(t, s.urls[0])
	tab.expects("status of 40")
	tab.signIn(alice)
	tab.click(".rail a[href='/connect/apps']")
	tab.sees("Apps on this computer can connect.")
	tab.click(".app:nth-child(6) summary")
	tab.sees("Bearer YOUR_TOKEN")
	tab.fill("input[name=name]", "Cursor on my laptop")
	tab.eval(`document.querySelector("select[name=scopes]").value = "read"`, nil)
	tab.click("form.token-form button")
	tab.sees("Your new token")
	var newToken, settings, install string
	tab.eval(`document.querySelector("#new-token").textContent`, &newToken)
	tab.eval(`document.querySelector("#snippet-mcp").textContent`, &settings)
	tab.eval(`decodeURIComponent(document.querySelector("a[href^='vscode:']").href)`, &install)
	for name, text := range map[string]string{"settings": settings, "install link": install} {
		if !strings.Contains(text, "Bearer "+newToken) || !strings.Contains(text, s.urls[0]+"/mcp") {
			t.Errorf("%s without the new token: %s", name, text)
		}
	}
	for replica := range s.urls {
		if status, body := s.api(t, replica, newToken, "GET", "/api/buckets", ""); status != http.StatusOK {
			t.Errorf("the new token: %d %s", status, body)
		}
		if status, body := s.api(t, replica, newToken, "POST", "/api/memory", `{"text":"a"}`); status != http.StatusForbidden {
			t.Errorf("the new token writes: %d %s", status, body)
		}
	}
	tab.eval(`document.querySelectorAll("code").forEach((c) => { c.textContent = c.textContent.replaceAll(/mn_\w{38}/g, "mn_5rT0kXq9VbYw2ZcL8sHdJfG3nPeUaM7i0A1b2C"); })`, nil)
	tab.click(".app:nth-child(3) summary")
	tab.looks("token-new")
	tab.fill("input[name=name]", "CURSOR on my laptop")
	tab.click("form.token-form button")
	tab.sees("already exists")
	tab.looks("token-refused")
	tab.click(".tabs a[href='/connect']")
	tab.sees("Cursor on my laptop")
	tab.sees("Read only")
	tab.seesNot(newToken)
	tab.looks("tokens")
	tab.click(".rows .danger")
	tab.sees("Token revoked.")
	tab.seesNot("Cursor on my laptop")
	for replica := range s.urls {
		eventually(t, func() string {
			if status, _ := s.api(t, replica, newToken, "GET", "/api/buckets", ""); status != http.StatusUnauthorized {
				return "the revoked token is still accepted"
			}
			return ""
		})
	}
}

// guardsTokens: users revoke only their own tokens, and creating one needs a recent sign-in.
func guardsTokens(t *testing.T, s *site, _ *browser) {
	users := s.newTenant(t, nil, "alice", "bob")
	alice, bob := s.signedIn(t, 0, users[0]), s.signedIn(t, 0, users[1])
	if status, body := alice.post(t, "/connect/tokens", url.Values{"name": {"Laptop"}, "scopes": {"read"}, "days": {"30"}}); status != http.StatusOK || !strings.Contains(body, "mn_") {
		t.Fatalf("create: %d %s", status, body)
	}
	list, err := s.db.UserTokens(t.Context(), users[0].Scope)
	if err != nil || len(list) != 1 || list[0].ExpiresAt.IsZero() || list[0].Access != tenant.AccessRead {
		t.Fatalf("tokens: %+v, %v", list, err)
	}
	if _, body := bob.get(t, "/connect"); strings.Contains(body, "Laptop") {
		t.Error("bob sees the token of alice")
	}
	for _, id := range []string{list[0].ID, "x"} {
		if status, _ := bob.post(t, "/connect/tokens/revoke", url.Values{"id": {id}}); status != http.StatusNotFound {
			t.Errorf("bob revokes %s: %d, want 404", id, status)
		}
	}
	for name, form := range map[string]url.Values{
		"no name": {"scopes": {"read"}}, "no scope": {"name": {"a"}}, "another scope": {"name": {"a"}, "scopes": {"root"}}, "days": {"name": {"a"}, "scopes": {"read"}, "days": {"soon"}},
	} {
		if status, _ := alice.post(t, "/connect/tokens", form); status != http.StatusBadRequest {
			t.Errorf("%s: %d, want 400", name, status)
		}
	}
}
