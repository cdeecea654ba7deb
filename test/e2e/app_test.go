package e2e_test

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
)

// connectedApp is an authorized app with its secrets.
type connectedApp struct{ client, code, verifier, access, refresh string }

// authorizeApp signs a user in and authorizes an app through the dashboard's pages.
func authorizeApp(t *testing.T, tenant, user string) connectedApp {
	t.Helper()
	const callback = "http://127.0.0.1:9/"
	verifier := rand.Text() + rand.Text()
	base := platform.env["MNEMO_URL"]
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	post := func(path, kind, body string, want int, out any) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", kind)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		res, err := browser.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != want {
			t.Fatalf("POST %s: %s, want %d", path, res.Status, want)
		}
		if out != nil {
			if err := json.NewDecoder(res.Body).Decode(out); err != nil {
				t.Fatal(err)
			}
		}
		return res
	}
	const form = "application/x-www-form-urlencoded"
	var client struct {
		ID string `json:"client_id"`
	}
	post("/register", "application/json", `{"client_name":"App of `+tenant+`","redirect_uris":["`+callback+`"]}`, http.StatusCreated, &client)
	name := "default/" + tenant + "/" + user
	post("/sign-in", form, url.Values{"name": {name}, "password": {secret(t, tenant, user, "password")}}.Encode(), http.StatusSeeOther, nil)
	sum := sha256.Sum256([]byte(verifier))
	sent := post("/authorize", form, url.Values{
		"client_id": {client.ID}, "redirect_uri": {callback}, "response_type": {"code"},
		"answer": {"allow"}, "asked": {"yes"}, "for": {name},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}.Encode(), http.StatusSeeOther, nil)
	to, err := sent.Location()
	if err != nil {
		t.Fatal(err)
	}
	var given struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
	}
	code := to.Query().Get("code")
	post("/token", form, url.Values{
		"grant_type": {"authorization_code"}, "client_id": {client.ID}, "code": {code}, "code_verifier": {verifier},
	}.Encode(), http.StatusOK, &given)
	return connectedApp{client.ID, code, verifier, given.Access, given.Refresh}
}

// usesMCP calls a tool with a token and returns the status.
func usesMCP(t *testing.T, token string) int {
	t.Helper()
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_buckets","arguments":{}}}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, platform.env["MNEMO_URL"]+"/mcp", strings.NewReader(call))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}
