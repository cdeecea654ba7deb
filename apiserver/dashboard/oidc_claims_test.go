package dashboard_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/apiserver"
	"github.com/mnemo-dev/mnemo/apiserver/dashboard"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
)

// claimsProvider is an identity provider that issues ID tokens with any claims.
type claimsProvider struct {
	*httptest.Server
	key *rsa.PrivateKey

	mu       sync.Mutex
	metadata map[string]any
	claims   map[string]any
	nonce    string
}

func newClaimsProvider(t *testing.T) *claimsProvider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &claimsProvider{key: key, metadata: map[string]any{}, claims: map[string]any{}}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

func (p *claimsProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	var answer map[string]any
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		answer = map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/auth", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256"}}
		maps.Copy(answer, p.metadata)
	case "/keys":
		answer = map[string]any{"keys": []any{map[string]any{"kty": "RSA", "kid": "k", "alg": "RS256", "use": "sig",
			"n": base64.RawURLEncoding.EncodeToString(p.key.N.Bytes()), "e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(p.key.E)).Bytes())}}}
	case "/token":
		claims := map[string]any{"iss": p.URL, "aud": "mnemo", "exp": time.Now().Add(time.Minute).Unix(), "iat": time.Now().Unix(), "nonce": p.nonce,
			"sub": "s-1", "email": "ann@acme.test", "email_verified": true}
		maps.Copy(claims, p.claims)
		answer = map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": p.sign(claims)}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (p *claimsProvider) sign(claims map[string]any) string {
	header, _ := json.Marshal(map[string]string{"alg": "RS256", "kid": "k", "typ": "JWT"})
	payload, _ := json.Marshal(claims)
	text := base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(payload)
	sum := sha256.Sum256([]byte(text))
	signature, _ := rsa.SignPKCS1v15(nil, p.key, crypto.SHA256, sum[:])
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// set replaces the claims.
func (p *claimsProvider) set(claims map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims = claims
}

// claimsSite is a server whose users sign in with a claimsProvider.
type claimsSite struct {
	*claimsProvider
	db   *postgres.DB
	spec tenant.Spec
	url  string
}

// newClaimsSite starts a server with a tenant for acme.test; change configures the
// provider.
func newClaimsSite(t *testing.T, metadata map[string]any, change func(*dashboard.Provider)) *claimsSite {
	t.Helper()
	p := newClaimsProvider(t)
	p.metadata = metadata
	db := postgrestest.New(t)
	s := &claimsSite{claimsProvider: p, db: db, spec: tenanttest.NewSpec()}
	s.spec.OIDC = tenant.OIDC{Issuer: p.URL, Domains: []string{"acme.test"}}
	s.apply(t)
	provider := &dashboard.Provider{Name: "Example ID", Issuer: p.URL, ClientID: "mnemo", ClientSecret: "secret"}
	if change != nil {
		change(provider)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.url = "http://" + l.Addr().String()
	server := apiserver.New(apiserver.Config{Tokens: db, Sessions: db, Access: db, UserTokens: db, Holdings: db.Holdings, Platform: db, Providers: []*dashboard.Provider{provider}})
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		_ = server.Shutdown(t.Context())
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *claimsSite) apply(t *testing.T) {
	t.Helper()
	if _, err := s.db.Apply(t.Context(), s.spec); err != nil {
		t.Fatal(err)
	}
}

func (s *claimsSite) visitor(t *testing.T) visitor {
	t.Helper()
	v := (&site{urls: [2]string{s.url, s.url}}).visitor(t, 0)
	v.Transport = &http.Transport{DisableKeepAlives: true}
	return v
}

// signIn signs in and returns the status and the redirect or page. The response has
// the additional parameters.
func (s *claimsSite) signIn(t *testing.T, v visitor, query, response string) (status int, where string) {
	t.Helper()
	return s.signInFrom(t, v, "/sign-in/with/0"+query, response)
}

// signInFrom is signIn from the path that redirects to the provider.
func (s *claimsSite) signInFrom(t *testing.T, v visitor, path, response string) (status int, where string) {
	t.Helper()
	_, to := v.follow(t, path)
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.nonce = u.Query().Get("nonce")
	s.mu.Unlock()
	return v.follow(t, "/sign-in/callback?code=c&state="+u.Query().Get("state")+response)
}

// A Google account whose address was verified once may not belong to the organization
// that owns the domain: the claim hd says whether it does.
func TestHostedDomain(t *testing.T) {
	t.Parallel()
	s := newClaimsSite(t, nil, func(p *dashboard.Provider) { p.RequireHostedDomain = true })
	for name, tc := range map[string]struct {
		hd     any
		status int
	}{
		"Missing": {nil, http.StatusForbidden}, "OfAnother": {"other.test", http.StatusForbidden}, "OfTheAddress": {"Acme.Test", http.StatusSeeOther},
	} {
		claims := map[string]any{}
		if tc.hd != nil {
			claims["hd"] = tc.hd
		}
		s.set(claims)
		if status, body := s.signIn(t, s.visitor(t), "", ""); status != tc.status {
			t.Errorf("%s: %d %.200s, want %d", name, status, body, tc.status)
		}
	}
}

// All providers redirect to the same address, so a response names its provider.
func TestResponseIssuer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		names    bool
		response func(issuer string) string
		status   int
	}{
		"Own":        {true, func(issuer string) string { return "&iss=" + url.QueryEscape(issuer) }, http.StatusSeeOther},
		"Another":    {false, func(string) string { return "&iss=" + url.QueryEscape("https://evil.test") }, http.StatusBadRequest},
		"Missing":    {true, func(string) string { return "" }, http.StatusBadRequest},
		"NotNamed":   {false, func(string) string { return "" }, http.StatusSeeOther},
		"Twice":      {true, func(issuer string) string { return "&iss=" + url.QueryEscape(issuer) + "&iss=x" }, http.StatusBadRequest},
		"WithDenial": {true, func(string) string { return "&error=access_denied" }, http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newClaimsSite(t, map[string]any{"authorization_response_iss_parameter_supported": tc.names}, nil)
			if status, body := s.signIn(t, s.visitor(t), "", tc.response(s.URL)); status != tc.status {
				t.Errorf("%d %.300s, want %d", status, body, tc.status)
			}
		})
	}
}

// Signing out ends the provider's session too, if configured.
func TestEndSession(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]bool{"Configured": true, "NotConfigured": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newClaimsSite(t, map[string]any{"end_session_endpoint": "https://id.test/logout?a=b"}, func(p *dashboard.Provider) { p.EndSession = ends })
			v := s.visitor(t)
			if status, body := s.signIn(t, v, "", ""); status != http.StatusSeeOther {
				t.Fatalf("sign-in: %d %s", status, body)
			}
			status, body := v.post(t, "/sign-out", url.Values{})
			want := "https://id.test/logout?a=b&amp;client_id=mnemo&amp;post_logout_redirect_uri=" + url.QueryEscape(s.url+"/sign-in")
			if ends && (status != http.StatusOK || !strings.Contains(body, want)) {
				t.Errorf("signing out: %d %s, want a page that leads to %s", status, body, want)
			}
			if !ends && status != http.StatusSeeOther {
				t.Errorf("signing out: %d, want a redirect to the sign-in page", status)
			}
			if status, _ := v.get(t, "/connect"); status != http.StatusSeeOther {
				t.Errorf("after signing out: %d", status)
			}
		})
	}
}

// An unattended browser session does not suffice to create a token or to erase the
// data: both require an authentication within the last 10 minutes.
func TestRecentAuthentication(t *testing.T) {
	t.Parallel()
	s := newClaimsSite(t, nil, nil)
	token := url.Values{"confirmed": {"yes"}}
	again := func(v visitor, how string) {
		t.Helper()
		if status, body := v.post(t, "/connect/token", token); status != http.StatusSeeOther {
			t.Errorf("%s: creating a token: %d %.200s, want the sign-in page", how, status, body)
		}
		if status, body := v.post(t, "/connect/tokens", url.Values{"name": {"a"}, "scopes": {"read"}}); status != http.StatusSeeOther {
			t.Errorf("%s: creating a named token: %d %.200s, want the sign-in page", how, status, body)
		}
		if status, body := v.post(t, "/account/erase", url.Values{"confirm": {"delete everything"}}); status != http.StatusSeeOther || strings.Contains(body, "erased") {
			t.Errorf("%s: erasing: %d %.200s, want the sign-in page", how, status, body)
		}
		if status, body := v.get(t, "/sign-in?again=yes&next=%2Fconnect"); status != http.StatusOK || !strings.Contains(body, "/sign-in/with/0?next=%2fconnect&amp;again=yes") || strings.Contains(body, "password") {
			t.Errorf("%s: the sign-in page: %d %s", how, status, body)
		}
	}
	v := s.visitor(t)
	s.set(map[string]any{})
	if status, _ := s.signIn(t, v, "", ""); status != http.StatusSeeOther {
		t.Fatal("sign-in failed")
	}
	again(v, "the provider does not tell when the user authenticated")
	s.set(map[string]any{"auth_time": time.Now().Add(-time.Hour).Unix()})
	s.signIn(t, v, "", "")
	again(v, "the user authenticated an hour ago")

	if status, body := s.signIn(t, v, "?again=yes&next=%2Fconnect", ""); status != http.StatusForbidden {
		t.Errorf("the provider did not authenticate again: %d %.300s, want 403", status, body)
	}
	s.set(map[string]any{"auth_time": time.Now().Unix()})
	if status, where := s.signIn(t, v, "?again=yes&next=%2Fconnect", ""); status != http.StatusSeeOther || where != "/connect" {
		t.Fatalf("authenticated again: %d %.300s", status, where)
	}
	status, body := v.post(t, "/connect/token", token)
	if status != http.StatusOK || !strings.Contains(body, "new-token") {
		t.Fatalf("creating a token after authenticating: %d %.300s", status, body)
	}
	if strings.Contains(body, "Create new password") {
		t.Error("the page offers a password to a user of an identity provider")
	}
	if status, body := v.post(t, "/connect/password", token); status != http.StatusForbidden || strings.Contains(body, "new-password") {
		t.Errorf("creating a password: %d %.300s, want 403", status, body)
	}
	if !strings.Contains(body, time.Now().Add(tenant.ExternalTokenLife).UTC().Format("2 January 2006")) {
		t.Error("the page does not say when the token expires")
	}
}

// A user whose address is removed loses access immediately and cannot sign in again,
// even if the provider changes the address.
func TestRemovedUser(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(*testing.T, *claimsSite) (restore func()){
		"Tenant": func(t *testing.T, s *claimsSite) func() {
			t.Helper()
			s.spec.OIDC.Removed = []string{"ann@acme.test"}
			s.apply(t)
			return func() { s.spec.OIDC.Removed = nil; s.apply(t) }
		},
		"Administrator": func(t *testing.T, s *claimsSite) func() {
			t.Helper()
			if n, err := s.db.RemoveExternalUser(t.Context(), s.spec.ID, "Ann@Acme.test"); err != nil || n != 1 {
				t.Fatalf("removed %d, %v", n, err)
			}
			s.apply(t) // which does not undo it
			return func() {
				if err := s.db.RestoreExternalUser(t.Context(), s.spec.ID, "ann@acme.test"); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newClaimsSite(t, nil, func(p *dashboard.Provider) { p.NoAuthTime = true })
			s.set(map[string]any{"email": "Ann@acme.test"})
			v, other := s.visitor(t), s.visitor(t)
			s.signIn(t, v, "", "")
			_, page := v.post(t, "/connect/token", url.Values{"confirmed": {"yes"}})
			token := tokenIn.FindString(page)
			if _, err := s.db.Identify(t.Context(), tenant.HashSecret(token)); err != nil {
				t.Fatalf("the new token %q: %v", token, err)
			}
			s.set(map[string]any{"sub": "s-2", "email": "bob@acme.test"})
			s.signIn(t, other, "", "")

			restore := remove(t, s)
			if status, _ := v.get(t, "/connect"); status != http.StatusSeeOther {
				t.Errorf("the session survives: %d", status)
			}
			if _, err := s.db.Identify(t.Context(), tenant.HashSecret(token)); err == nil {
				t.Error("the token survives")
			}
			for _, email := range []string{"ann@ACME.test", "ann.new@acme.test"} {
				s.set(map[string]any{"email": email})
				if status, body := s.signIn(t, s.visitor(t), "", ""); status != http.StatusForbidden || !strings.Contains(body, "access was removed") {
					t.Errorf("signing in as %s: %d %.300s", email, status, body)
				}
			}
			if status, _ := other.get(t, "/connect"); status != http.StatusOK {
				t.Errorf("another user: %d", status)
			}
			restore()
			s.set(map[string]any{"email": "ann@acme.test"})
			if status, body := s.signIn(t, s.visitor(t), "", ""); status != http.StatusSeeOther {
				t.Errorf("after the restore: %d %.300s", status, body)
			}
		})
	}
}

// tokenIn matches an API token.
var tokenIn = regexp.MustCompile(`mn_[0-9A-Za-z]{38}`)
