package oauth_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/oauth"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	issuer   = "https://mnemo.example.com"
	resource = issuer + "/mcp"
	callback = "https://claude.ai/api/mcp/auth_callback"
	verifier = "a-verifier-of-forty-three-characters-or-more"
)

// store is an in-memory store of one client and one grant.
type store struct {
	client  oauth.Client
	scope   tenant.Scope
	session tenant.Hash
	grant   oauth.Grant
	code    tenant.Hash
	issued  oauth.Issued
	revoked []string
}

func (s *store) CreateClient(_ context.Context, c oauth.Client, _ string) error {
	s.client = c
	return nil
}

func (s *store) Client(_ context.Context, id string) (oauth.Client, error) {
	if strings.ContainsAny(id, "\x00\n") || !utf8.ValidString(id) {
		return oauth.Client{}, errors.New("invalid byte sequence for PostgreSQL")
	}
	if id != s.client.ID {
		return oauth.Client{}, fault.New(fault.NotFound, "no such client")
	}
	return s.client, nil
}

func (s *store) CreateGrant(_ context.Context, scope tenant.Scope, session tenant.Hash, g oauth.Grant, code tenant.Hash, _ time.Duration) error {
	s.scope, s.session, s.grant, s.code = scope, session, g, code
	return nil
}

func (s *store) SpendSecret(_ context.Context, kind tenant.TokenKind, h tenant.Hash, check func(oauth.Grant) error, issued oauth.Issued) error {
	if h != map[tenant.TokenKind]tenant.Hash{tenant.Code: s.code, tenant.RefreshToken: s.issued.Refresh}[kind] {
		return fault.New(fault.NotFound, "no such secret")
	}
	if err := check(s.grant); err != nil {
		return err
	}
	s.issued = issued
	return nil
}

func (s *store) RevokeGrant(_ context.Context, client string, kind tenant.TokenKind, _ tenant.Hash) error {
	s.revoked = append(s.revoked, client+" "+string(kind))
	return nil
}

func (*store) ConnectedApps(context.Context, tenant.Scope) ([]oauth.ConnectedApp, error) {
	return nil, nil
}
func (*store) EndGrant(context.Context, tenant.Scope, string) error { return nil }
func (*store) IdentifyHolder(context.Context, tenant.TokenKind, tenant.Hash) (tenant.Identity, error) {
	return tenant.Identity{}, fault.New(fault.Unauthorized, "no such token")
}

func newService() (*oauth.Service, *store) {
	s := &store{}
	at := &url.URL{Scheme: "https", Host: "mnemo.example.com", Path: "/"}
	return oauth.NewService(oauth.Config{Clients: s, Grants: s, Access: s, URL: at, Random: rand.Reader, Now: time.Now}), s
}

func wantCode(t *testing.T, what string, err error, code string) {
	t.Helper()
	e, ok := errors.AsType[*oauth.Error](err)
	if !ok || e.Code != code || e.Description == "" {
		t.Errorf("%s: %v, want %s", what, err, code)
	}
}

func TestRegisterValidatesRedirectURIs(t *testing.T) {
	t.Parallel()
	for uri, good := range map[string]bool{
		callback: true, "http://localhost:33418/callback": true, "http://127.0.0.1/": true, "http://[::1]:1/x": true,
		"cursor://anysphere.cursor-mcp/oauth/callback": true, "com.example.app:/cb": true,
		"vscode://vscode.github-authentication/did-authenticate": true, "raycast://oauth?package_name=Extension": true, "warp://mcp/oauth2callback": true,
		"com.googleusercontent.apps.123:/oauth2redirect": true, "vscode-insiders://a.b/c": true, "https://a.test/cb?code_verifier=1&x=%2F": true,
		// Schemes that open a browser.
		"microsoft-edge:https://evil.test/cb": false, "microsoft-edge://evil.test/cb": false, "microsoft-edge-https://evil.test/": false,
		"x-safari-https://evil.test/cb": false, "googlechrome://evil.test/cb": false, "GoogleChromes://evil.test/cb": false,
		"firefox://open-url?url=https://evil.test": false, "firefox-focus://open-url?url=evil.test": false, "intent://evil.test/cb": false, "edge://newtab/": false,
		"chrome-extension://abc/cb": false, "moz-extension://abc/cb": false, "safari-web-extension://abc/cb": false, "web+mnemo://evil.test/cb": false,
		"matrix://evil.test/": false, "anything://open?url=https%3A%2F%2Fevil.test": false, "anything://open/HTTP://evil.test": false,
		"app:/cb": false, "app:///cb": false, "app:cb": false, "com.example.app:cb": false, "com.example.app:https://evil.test/cb": false,
		// Parameters of the response, and invalid queries.
		"https://a.test/cb?code=1": false, "https://a.test/cb?x=1&state=1": false, "https://a.test/?iss=": false, "https://a.test/?error=x": false,
		"https://a.test/?%63ode=1": false, "https://a.test/?a;b": false, "https://a.test/?%zz": false, "https://a.test/\u202ecb": false,
		"http://example.com/cb": false, "https:///cb": false, "https://a.com;script-src/cb": false, "https://*/cb": false, "/cb": false, "": false, "javascript:alert(1)": false, "DATA:text/html,x": false,
		"https://example.com/#x": false, "https://u:p@example.com/": false, "https://exa mple.com/": false, "https://example.com/\n": false,
		"http://127.0.0.1.evil.com/": false, "https://example.com/" + strings.Repeat("x", 2000): false,
	} {
		s, _ := newService()
		c, err := s.Register(t.Context(), oauth.Registration{Name: "a", RedirectURIs: []string{uri}}, "")
		if good && (err != nil || c.ID == "") {
			t.Errorf("%q was rejected: %v", uri, err)
		}
		if !good {
			wantCode(t, uri, err, oauth.InvalidRedirect)
		}
	}
	s, _ := newService()
	for name, r := range map[string]oauth.Registration{
		"implicit": {RedirectURIs: []string{callback}, ResponseTypes: []string{"token"}},
		"machine":  {RedirectURIs: []string{callback}, GrantTypes: []string{"client_credentials"}},
	} {
		_, err := s.Register(t.Context(), r, "")
		wantCode(t, name, err, oauth.InvalidMetadata)
	}
	// The name is displayed on the consent page.
	for given, want := range map[string]string{
		" My\u202eApp\n\x00 ": "My App", "": "Unnamed app", strings.Repeat("é", 101): strings.Repeat("é", 100) + "…",
		"\u3164\uffa0\u115f\u1160\u2800":          "Unnamed app", // letters without a glyph
		"Claude\u3164\u3164Desktop":               "Claude Desktop",
		"\u0301\u0302App":                         "App",                                    // marks that would change the text before the name
		"A" + strings.Repeat("\u030d", 90) + "pp": "A" + strings.Repeat("\u030d", 3) + "pp", // marks that would cover the text above it
		"हिन्दी ภาษาไทยที่ Việt":                  "हिन्दी ภาษาไทยที่ Việt",
	} {
		if c, err := s.Register(t.Context(), oauth.Registration{Name: given, RedirectURIs: []string{callback}}, ""); err != nil || c.Name != want {
			t.Errorf("%q became %q, %v", given, c.Name, err)
		}
	}
}

func good(client string) oauth.Request {
	sum := sha256.Sum256([]byte(verifier))
	return oauth.Request{ClientID: client, RedirectURI: callback, ResponseType: "code", State: "s&1", ChallengeMethod: "S256",
		Challenge: base64.RawURLEncoding.EncodeToString(sum[:]), Resources: []string{resource}}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	s, _ := newService()
	c, err := s.Register(t.Context(), oauth.Registration{RedirectURIs: []string{callback, "http://127.0.0.1:1/cb?x=1"}}, "")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change func(*oauth.Request)
		code   string
	}{
		"good":                          {func(*oauth.Request) {}, ""},
		"no resource":                   {func(r *oauth.Request) { r.Resources = nil }, ""},
		"resource with trailing slash":  {func(r *oauth.Request) { r.Resources = []string{resource + "/"} }, ""},
		"other loopback port":           {func(r *oauth.Request) { r.RedirectURI = "http://127.0.0.1:54321/cb?x=1" }, ""},
		"unknown client":                {func(r *oauth.Request) { r.ClientID = "x" }, oauth.InvalidClient},
		"no client":                     {func(r *oauth.Request) { r.ClientID = "" }, oauth.InvalidRequest},
		"no redirect URI":               {func(r *oauth.Request) { r.RedirectURI = "" }, oauth.InvalidRequest},
		"other path":                    {func(r *oauth.Request) { r.RedirectURI = callback + "/.." }, oauth.InvalidRequest},
		"other host":                    {func(r *oauth.Request) { r.RedirectURI = "https://evil.example.com/" }, oauth.InvalidRequest},
		"other loopback path":           {func(r *oauth.Request) { r.RedirectURI = "http://127.0.0.1:1/other" }, oauth.InvalidRequest},
		"loopback with fragment":        {func(r *oauth.Request) { r.RedirectURI = "http://127.0.0.1:1/cb?x=1#" }, oauth.InvalidRequest},
		"loopback address as user info": {func(r *oauth.Request) { r.RedirectURI = "http://127.0.0.1:1@evil.com/cb?x=1" }, oauth.InvalidRequest},
		"response type token":           {func(r *oauth.Request) { r.ResponseType = "token" }, oauth.UnsupportedResponse},
		"challenge method plain":        {func(r *oauth.Request) { r.ChallengeMethod = "plain" }, oauth.InvalidRequest},
		"no challenge method":           {func(r *oauth.Request) { r.ChallengeMethod = "" }, oauth.InvalidRequest},
		"no challenge":                  {func(r *oauth.Request) { r.Challenge = "" }, oauth.InvalidRequest},
		"short challenge":               {func(r *oauth.Request) { r.Challenge = "abcd" }, oauth.InvalidRequest},
		"other resource":                {func(r *oauth.Request) { r.Resources = []string{"https://other.example.com/mcp"} }, oauth.InvalidTarget},
		"additional resource":           {func(r *oauth.Request) { r.Resources = append(r.Resources, issuer) }, oauth.InvalidTarget},
	} {
		r := good(c.ID)
		tc.change(&r)
		_, err := s.Check(t.Context(), r)
		if tc.code != "" {
			wantCode(t, name, err, tc.code)
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	ask, err := s.Check(t.Context(), good(c.ID))
	if err != nil {
		t.Fatal(err)
	}
	sent, err := s.Deny(ask)
	if err != nil || sent != callback+"?error=access_denied&error_description=the+user+denied+access&iss="+url.QueryEscape(issuer)+"&state=s%261" {
		t.Errorf("refused: sent to %s, %v", sent, err)
	}
}

// TestServes accepts addresses that are encrypted or local, and have no path.
func TestServes(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"https://mnemo.example.com": true, "https://mnemo.example.com:8443/": true, "http://127.0.0.1:8080": true, "http://localhost": true, "http://[::1]": true,
		"http://mnemo.default.svc": false, "https://example.com/mnemo": false, "http://127.0.0.1.example.com": false,
	} {
		u, err := url.Parse(address)
		if err != nil || oauth.Serves(u) != want {
			t.Errorf("%s: %t, want %t (%v)", address, !want, want, err)
		}
	}
	if oauth.Serves(nil) {
		t.Error("Serves(nil) = true")
	}
}

// TestClientIDs checks that malformed ids are rejected before they reach the store.
func TestClientIDs(t *testing.T) {
	t.Parallel()
	s, _ := newService()
	c, err := s.Register(t.Context(), oauth.Registration{RedirectURIs: []string{callback}}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"\x00", "\xff", "x", c.ID + "\n", c.ID[:21] + "\n", c.ID[:21], c.ID + "A", c.ID[:21] + "/", strings.Repeat("A", 22)} {
		_, err := s.Check(t.Context(), good(id))
		wantCode(t, fmt.Sprintf("%q", id), err, oauth.InvalidClient)
	}
	if _, err := s.Check(t.Context(), good(c.ID)); err != nil {
		t.Error(err)
	}
	// A missing client_id must not make clients register again.
	_, err = s.Refresh(t.Context(), "", "mnr_x", nil)
	wantCode(t, "none", err, oauth.InvalidRequest)
}

func TestRedeemAndRefresh(t *testing.T) {
	t.Parallel()
	s, kept := newService()
	c, err := s.Register(t.Context(), oauth.Registration{RedirectURIs: []string{callback + "?b=%2f&a=+&b"}}, "")
	if err != nil {
		t.Fatal(err)
	}
	r := good(c.ID)
	r.RedirectURI = ""
	ask, err := s.Check(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	sent, err := s.Approve(t.Context(), tenant.Scope{Tenant: "t", User: 1}, tenant.Hash{9}, ask)
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(sent)
	if err != nil {
		t.Fatal(err)
	}
	code := to.Query().Get("code")
	if !strings.HasPrefix(sent, callback+"?b=%2f&a=+&b&code=") || to.Query().Get("iss") != issuer || !tenant.Code.Is(code) || kept.code != tenant.HashSecret(code) ||
		kept.scope != (tenant.Scope{Tenant: "t", User: 1}) || kept.session != (tenant.Hash{9}) || kept.grant.Client != c.ID {
		t.Fatalf("sent to %s, kept %+v", to, kept.grant)
	}
	in := oauth.CodeInput{ClientID: c.ID, Code: code, RedirectURI: callback + "?b=%2f&a=+&b", Verifier: verifier, Resources: []string{resource}}
	for name, change := range map[string]func(*oauth.CodeInput){
		"other code":            func(in *oauth.CodeInput) { in.Code = withOtherLastByte(code) },
		"other redirect URI":    func(in *oauth.CodeInput) { in.RedirectURI = callback },
		"other verifier":        func(in *oauth.CodeInput) { in.Verifier = verifier + "x" },
		"no verifier":           func(in *oauth.CodeInput) { in.Verifier = "" },
		"token instead of code": func(in *oauth.CodeInput) { in.Code = "mn_x" },
	} {
		bad := in
		change(&bad)
		_, err := s.Redeem(t.Context(), bad)
		wantCode(t, name, err, oauth.InvalidGrant)
	}
	bad := in
	bad.Resources = []string{issuer}
	_, err = s.Redeem(t.Context(), bad)
	wantCode(t, "additional resource", err, oauth.InvalidTarget)
	bad = in
	bad.ClientID = "x"
	_, err = s.Redeem(t.Context(), bad)
	wantCode(t, "an unknown client", err, oauth.InvalidClient)
	kept.grant.Client = "another"
	_, err = s.Redeem(t.Context(), in)
	wantCode(t, "another client's code", err, oauth.InvalidGrant)
	kept.grant.Client = c.ID
	first, err := s.Redeem(t.Context(), in)
	if err != nil || !tenant.AccessToken.Is(first.Access) || !tenant.RefreshToken.Is(first.Refresh) || tenant.IsToken(first.Access) || first.ExpiresIn != oauth.AccessLife {
		t.Fatalf("tokens %+v, %v", first, err)
	}
	if kept.issued.Access != tenant.HashSecret(first.Access) || kept.issued.Refresh != tenant.HashSecret(first.Refresh) {
		t.Error("the store did not receive the hashes of the tokens")
	}
	_, err = s.Refresh(t.Context(), "x", first.Refresh, nil)
	wantCode(t, "an unknown client refreshes", err, oauth.InvalidClient)
	_, err = s.Refresh(t.Context(), c.ID, first.Access, nil)
	wantCode(t, "an access token refreshes", err, oauth.InvalidGrant)
	second, err := s.Refresh(t.Context(), c.ID, first.Refresh, nil)
	if err != nil || second == first {
		t.Errorf("refreshed %+v, %v", second, err)
	}
	_, err = s.Refresh(t.Context(), c.ID, first.Refresh, nil)
	wantCode(t, "a used refresh token", err, oauth.InvalidGrant)
	for _, token := range []string{second.Access, second.Refresh, code, "mn_x", ""} {
		if err := s.Revoke(t.Context(), c.ID, token); err != nil {
			t.Errorf("revoke %q: %v", token, err)
		}
	}
	if want := []string{c.ID + " access", c.ID + " refresh"}; !slices.Equal(kept.revoked, want) {
		t.Errorf("revoked %v, want %v", kept.revoked, want)
	}
	wantCode(t, "an unknown client revokes", s.Revoke(t.Context(), "x", second.Access), oauth.InvalidClient)
}

// withOtherLastByte returns the secret with another last character. Secrets are
// random, so a fixed replacement would sometimes leave it unchanged.
func withOtherLastByte(secret string) string {
	last := "x"
	if strings.HasSuffix(secret, last) {
		last = "y"
	}
	return secret[:len(secret)-1] + last
}
