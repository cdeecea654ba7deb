package dashboard_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// callback is the redirect URI of the clients in these tests.
const callback = "http://127.0.0.1:9/callback"

var hiddenField = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)

// hiddenFields returns the hidden form fields of a page.
func hiddenFields(body string) url.Values {
	form := url.Values{}
	for _, f := range hiddenField.FindAllStringSubmatch(body, -1) {
		form.Add(html.UnescapeString(f[1]), html.UnescapeString(f[2]))
	}
	return form
}

// answer opens and submits the consent page, and returns the redirect.
func (v visitor) answer(t *testing.T, address, answer string) *url.URL {
	t.Helper()
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	status, body := v.get(t, at.RequestURI())
	if status != http.StatusOK {
		t.Fatalf("GET %s: %d %s", at.RequestURI(), status, body)
	}
	form := hiddenFields(body)
	form.Set("answer", answer)
	form.Set("asked", "yes")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.url+"/authorize", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	res, err := v.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	to, err := res.Location()
	if err != nil || res.StatusCode != http.StatusSeeOther {
		t.Fatalf("answered with %s, %v", res.Status, err)
	}
	return to
}

// signedIn returns a visitor who is signed in at a replica.
func (s *site) signedIn(t *testing.T, replica int, u user) visitor {
	t.Helper()
	v := s.visitor(t, replica)
	if status := v.signIn(t, u); status != http.StatusSeeOther {
		t.Fatalf("sign in: %d", status)
	}
	return v
}

// The official Go client discovers the server, registers, obtains consent, calls
// tools and refreshes its token.
func connectsAGoClient(t *testing.T, s *site, _ *browser) {
	alice := s.newTenant(t, nil, "alice")[0]
	v := s.signedIn(t, 1, alice) // the page is any replica's
	asked, refreshed := 0, 0
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{
			Metadata: &oauthex.ClientRegistrationMetadata{RedirectURIs: []string{callback}, ClientName: "Go client"},
		},
		AuthorizationCodeFetcher: func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			asked++
			q := v.answer(t, args.URL, "allow").Query()
			return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
		},
		NewTokenSource: func(ctx context.Context, c *oauth2.Config, first *oauth2.Token) (oauth2.TokenSource, error) {
			first.Expiry = time.Now().Add(-time.Hour) // so that it refreshes at once
			return counted{c.TokenSource(ctx, first), first.AccessToken, &refreshed}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: s.urls[0] + "/mcp", OAuthHandler: handler}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if tools, err := session.ListTools(t.Context(), nil); err != nil || len(tools.Tools) != 9 {
		t.Errorf("tools: %+v, %v", tools, err)
	}
	got, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "store_memory", Arguments: json.RawMessage(`{"text":"2026-05-03 Miso the cat is grey."}`)})
	if err != nil || got.IsError {
		t.Fatalf("store_memory: %+v, %v", got, err)
	}
	if _, body := v.get(t, "/memories"); !strings.Contains(body, "Miso the cat is grey.") {
		t.Error("what the client stored is not its user's")
	}
	if asked != 1 || refreshed == 0 {
		t.Errorf("the user was asked %d times, the access refreshed %d times", asked, refreshed)
	}
}

// counted counts the tokens after the first.
type counted struct {
	oauth2.TokenSource
	first string
	n     *int
}

func (c counted) Token() (*oauth2.Token, error) {
	token, err := c.TokenSource.Token()
	if err == nil && token.AccessToken != c.first {
		*c.n++
	}
	return token, err
}

// The official Python client works as well.
func connectsAPythonClient(t *testing.T, s *site, _ *browser) {
	alice := s.newTenant(t, nil, "alice")[0]
	cache, err := devenv.OpenCache(nil)
	if err != nil {
		t.Fatal(err)
	}
	packages, err := devenv.PythonMCP(t.Context(), cache)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "python3", "testdata/oauth_client.py", s.urls[0], alice.name.String(), alice.password)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+packages, "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("oauth_client.py: %v\n%s", err, out)
	}
}

// oauthClient is a minimal OAuth client.
type oauthClient struct {
	t        *testing.T
	url      string
	id       string
	verifier string
}

// register registers a client.
func (s *site) register(t *testing.T, name string, redirects ...string) *oauthClient {
	t.Helper()
	metadata, err := json.Marshal(map[string]any{"client_name": name, "redirect_uris": append(redirects, callback)})
	if err != nil {
		t.Fatal(err)
	}
	status, body := s.send(t, 0, "/register", string(metadata), "Content-Type", "application/json")
	var made struct {
		ID string `json:"client_id"`
	}
	if err := json.Unmarshal([]byte(body), &made); err != nil || status != http.StatusCreated || made.ID == "" {
		t.Fatalf("register: %d %s", status, body)
	}
	return &oauthClient{t: t, url: s.urls[0], id: made.ID, verifier: rand.Text() + rand.Text()}
}

// send posts a body to a replica.
func (s *site) send(t *testing.T, replica int, path, body string, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.urls[replica]+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return do(t, http.DefaultClient, r)
}

// request returns an authorization request with changed parameters.
func (p *oauthClient) request(change ...string) string {
	sum := sha256.Sum256([]byte(p.verifier))
	q := url.Values{"client_id": {p.id}, "redirect_uri": {callback}, "response_type": {"code"}, "state": {`s"&<1>`}, "resource": {p.url + "/mcp"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}}
	for i := 0; i < len(change); i += 2 {
		q.Set(change[i], change[i+1])
	}
	return "/authorize?" + q.Encode()
}

// pair is the response of the token endpoint.
type pair struct {
	status int

	retryAfter string
	Access     string `json:"access_token"`
	Refresh    string `json:"refresh_token"`
	Scope      string `json:"scope"`
	Error      string `json:"error"`
}

// token requests the token endpoint.
func (p *oauthClient) token(form url.Values) pair {
	p.t.Helper()
	res, err := http.PostForm(p.url+"/token", form)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	got := pair{status: res.StatusCode, retryAfter: res.Header.Get("Retry-After")}
	if err := json.NewDecoder(res.Body).Decode(&got); err != nil {
		p.t.Fatal(err)
	}
	if res.Header.Get("Cache-Control") != "no-store" {
		p.t.Error("what holds tokens may be kept by caches")
	}
	return got
}

// redeem redeems a code with changed parameters.
func (p *oauthClient) redeem(code string, change ...string) pair {
	p.t.Helper()
	form := url.Values{"grant_type": {"authorization_code"}, "client_id": {p.id}, "code": {code}, "redirect_uri": {callback}, "code_verifier": {p.verifier}}
	for i := 0; i < len(change); i += 2 {
		form.Set(change[i], change[i+1])
	}
	return p.token(form)
}

func (p *oauthClient) refresh(token string) pair {
	p.t.Helper()
	return p.token(url.Values{"grant_type": {"refresh_token"}, "client_id": {p.id}, "refresh_token": {token}})
}

// connect obtains access from a user.
func (p *oauthClient) connect(v visitor) pair {
	p.t.Helper()
	got := p.redeem(v.answer(p.t, p.url+p.request(), "allow").Query().Get("code"))
	if got.status != http.StatusOK {
		p.t.Fatalf("status = %d, want %d", got.status, http.StatusOK)
	}
	if got.Scope != "memory" {
		p.t.Fatalf(`Scope = %q, want "memory"`, got.Scope)
	}
	return got
}

const listBuckets = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_buckets","arguments":{}}}`

// uses calls a tool and returns the status.
func (s *site) uses(t *testing.T, replica int, token string) (int, string) {
	t.Helper()
	return s.send(t, replica, "/mcp", listBuckets, "Authorization", "Bearer "+token, "Content-Type", "application/json", "Accept", "application/json, text/event-stream")
}

// accepted fails unless every replica returns the status, well before a cache entry
// would expire.
func (s *site) accepted(t *testing.T, token string, want int) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for replica := range s.urls {
		for deadline := time.Now().Add(15 * time.Second); ; <-tick.C {
			status, body := s.uses(t, replica, token)
			if status == want {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("replica %d answers %d %s, want %d", replica, status, body, want)
			}
		}
	}
}
