package oauth_test

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mnemo-dev/mnemo/internal/oauth"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// FuzzAuthorize: the code is sent only to the host and path of the registered address,
// once, with the client's state, and to no address that a browser handles itself.
func FuzzAuthorize(f *testing.F) {
	for _, redirect := range []string{
		callback, "http://127.0.0.1/cb", "http://localhost:1/cb?a=b", "com.example.app:/cb", "app://name", "https://x.test/?code=1", "javascript:alert(1)",
		"https://x.test@evil.test/", "https://x.test\\@evil.test", "HTTP://[::1]/", "https://x.test/#f", "https://x.test/%0d%0a", "intent://x#Intent;end", "view-source:https://x",
	} {
		f.Add(redirect, redirect, "state", resource)
	}
	f.Add("http://127.0.0.1/cb", "http://127.0.0.1:8123/cb", "a b&iss=x", resource+"/")
	f.Add("http://localhost/cb", "http://localhost.evil.test/cb", "\r\nSet-Cookie: a", "https://evil.test/mcp")
	own, err := url.Parse(issuer)
	if err != nil {
		f.Fatal(err)
	}
	sum := sha256.Sum256([]byte(verifier))
	challenge := base64.RawURLEncoding.EncodeToString(sum[:])
	f.Fuzz(func(t *testing.T, registered, given, state, target string) {
		clients := &store{}
		s := oauth.NewService(oauth.Config{Clients: clients, Grants: clients, Access: clients, URL: own, Random: rand.Reader, Now: time.Now})
		client, err := s.Register(t.Context(), oauth.Registration{Name: state, RedirectURIs: []string{registered}}, "192.0.2.1")
		if err != nil {
			return
		}
		if utf8.RuneCountInString(client.Name) > 101 || client.Name == "" || strings.ContainsFunc(client.Name, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Fatalf("the name %q is displayed as %q", state, client.Name)
		}
		ask, err := s.Check(t.Context(), oauth.Request{ClientID: client.ID, RedirectURI: given, ResponseType: "code", State: state,
			Challenge: challenge, ChallengeMethod: "S256", Resources: []string{target}})
		if err != nil {
			return
		}
		if strings.TrimSuffix(target, "/") != resource {
			t.Fatalf("the resource %q was accepted", target)
		}
		to, err := s.Approve(t.Context(), tenant.Scope{Tenant: "t", User: 1}, tenant.Hash{}, ask)
		if err != nil {
			t.Fatal(err)
		}
		sameAddress(t, registered, to)
		q := queryOf(t, to)
		if len(q["code"]) != 1 || !tenant.Code.Is(q.Get("code")) || len(q["iss"]) != 1 || q.Get("iss") != issuer || q.Get("state") != state || len(q["state"]) > 1 {
			t.Fatalf("%q redirects to %q", registered, to)
		}
	})
}

// sameAddress fails unless the two addresses differ in the query, and on loopback hosts
// in the port, only.
func sameAddress(t *testing.T, registered, to string) {
	t.Helper()
	want, err := url.Parse(registered)
	if err != nil {
		t.Fatal(err)
	}
	got, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	loopback := want.Scheme == "http" && want.Hostname() == got.Hostname()
	if got.Scheme != want.Scheme || got.Host != want.Host && !loopback || got.EscapedPath() != want.EscapedPath() || got.Opaque != want.Opaque || got.User != nil || got.Fragment != "" {
		t.Fatalf("registered %q, redirects to %q", registered, to)
	}
	switch strings.ToLower(got.Scheme) {
	case "javascript", "data", "file", "blob", "vbscript", "about", "view-source", "intent":
		t.Fatalf("redirects to %q", to)
	}
}

func queryOf(t *testing.T, address string) url.Values {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		t.Fatalf("%q: %v", address, err)
	}
	return q
}
