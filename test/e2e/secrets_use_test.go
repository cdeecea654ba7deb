package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/api/client"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

const formType = "application/x-www-form-urlencoded"

// TestMisusedSecrets uses the secrets of a user and of an app where they do not belong and
// a second time. The search at the end of the run (leaks) shows that no response, log or
// span repeats them.
func TestMisusedSecrets(t *testing.T) {
	t.Parallel()
	applyTenant(t, "misused", "")
	given := authorizeApp(t, "misused", "alice")
	token, password := secret(t, "misused", "alice", "token"), secret(t, "misused", "alice", "password")
	send := func(method, path, kind, body, bearer string, want int) []byte {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, platform.env["MNEMO_URL"]+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", kind)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("Authorization", "Bearer "+bearer)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != want {
			t.Errorf("%s %s: %s, %v, want %d", method, path, resp.Status, err, want)
		}
		return answer
	}
	exchange := func(want int, fields ...string) []byte {
		form := url.Values{"client_id": {given.client}}
		for i := 0; i < len(fields); i += 2 {
			form.Add(fields[i], fields[i+1])
		}
		return send("POST", "/token", formType, form.Encode(), "", want)
	}
	var next struct {
		Refresh string `json:"refresh_token"`
	}
	if err := json.Unmarshal(exchange(200, "grant_type", "refresh_token", "refresh_token", given.refresh), &next); err != nil {
		t.Fatal(err)
	}
	exchange(400, "grant_type", "refresh_token", "refresh_token", next.Refresh, "refresh_token", given.refresh)
	exchange(400, "grant_type", "refresh_token", "refresh_token", next.Refresh, "resource", "https://"+token+".example")
	exchange(400, "grant_type", "refresh_token", "refresh_token", given.code)
	exchange(400, "grant_type", "authorization_code", "code", given.code, "code_verifier", given.verifier) // used before: ends the grant
	exchange(400, "grant_type", "refresh_token", "refresh_token", next.Refresh)
	send("POST", "/revoke", formType, url.Values{"client_id": {"unknown"}, "token": {next.Refresh}}.Encode(), "", 401)
	for _, bearer := range []string{given.access, given.refresh, given.code, password} {
		send("GET", "/api/memories/x", "text/plain", "", bearer, 401)
	}
	for path, body := range map[string]string{"/api/memory": `{"text":1}`, "/api/v2/memory/update": `{}`, "/api/chat-history/search": `{"query":[]}`} {
		send("POST", path, "application/json", body, token, 400)
	}
	// One app stays connected, so that its rows are searched as well.
	if status := usesMCP(t, authorizeApp(t, "misused", "alice").access); status != http.StatusOK {
		t.Errorf("request of the second app: %d", status)
	}
	form := url.Values{"name": {"default/misused/bob"}, "password": {password}}
	send("POST", "/sign-in", formType, form.Encode(), "", 401)
	send("POST", "/sign-in", formType, url.Values{"name": {"misused"}, "password": {password}}.Encode(), "", 400)
	send("POST", "/sign-in", "application/json", "{}", "", 415)
}

// quoting is an endpoint of a model and an identity provider that reject every request
// and repeat its credentials.
func quoting(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	server := "http://" + r.Host
	var answer any
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		answer = map[string]any{"issuer": server, "authorization_endpoint": server + "/auth", "token_endpoint": server + "/token", "jwks_uri": server + "/keys"}
	case "/token":
		_, secret, _ := r.BasicAuth()
		w.WriteHeader(http.StatusUnauthorized)
		answer = map[string]string{"error": "invalid_client", "error_description": "the secret " + secret + r.FormValue("client_secret") + " is wrong; code " +
			r.FormValue("code") + ", verifier " + r.FormValue("code_verifier")}
	default:
		w.WriteHeader(http.StatusUnauthorized)
		answer = map[string]any{"error": map[string]string{"message": "invalid credentials " + r.Header.Get("Authorization")}}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// TestSecretsOfDependencies runs a server whose models and identity provider reject its
// credentials and repeat them in the response.
func TestSecretsOfDependencies(t *testing.T) {
	t.Parallel()
	endpoint := httptest.NewServer(http.HandlerFunc(quoting))
	t.Cleanup(endpoint.Close)
	keys := map[string]string{}
	for _, name := range []string{"embeddings key", "chat key", "client secret"} {
		keys[name] = "sk-" + postgrestest.NewToken(t)
		secrets.Add(name, keys[name])
	}
	providers := filepath.Join(t.TempDir(), "providers.json")
	writeJSON(t, providers, []map[string]string{{"name": "Example ID", "issuer": endpoint.URL, "clientId": "mnemo", "clientSecret": keys["client secret"]}})
	milvus, database := testkit.Milvus(t), postgrestest.Create(t)
	secrets.Add("Milvus password", milvus.Password)
	token := postgrestest.ApplyTenant(t, database)
	metrics := testkit.FreeAddress(t)
	server := startReplica(t, "DATABASE_URL="+database.AppURL, "MNEMO_LOG_LEVEL=debug", "MNEMO_METRICS_LISTEN="+metrics,
		"MILVUS_ADDRESS="+milvus.Addr, "MILVUS_USERNAME="+milvus.User, "MILVUS_PASSWORD="+milvus.Password,
		"MNEMO_EMBEDDER=openai", "MNEMO_EMBEDDINGS_URL="+endpoint.URL, "MNEMO_EMBEDDINGS_KEY="+keys["embeddings key"],
		"MNEMO_EMBEDDINGS_MODEL=m", "MNEMO_EMBEDDINGS_DIMENSIONS=384",
		"MNEMO_CHAT_URL="+endpoint.URL, "MNEMO_CHAT_KEY="+keys["chat key"], "MNEMO_CHAT_MODEL=m", "MNEMO_OIDC_PROVIDERS="+providers)
	alice := connectTo(t, server, token)
	alice.remember(t, "2026-05-07 The windmill was sold.")
	alice.ingest(t, "mill", "Mill", time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC), "Who bought the windmill?", "A beekeeper.")
	alice.recall(t, "windmill")
	if _, err := alice.Recall(t.Context(), client.RecallRequest{Query: new("who bought the windmill")}); err != nil {
		t.Error(err)
	}
	signInWithWrongSecret(t, server)
	eventually(t, time.Minute, func() string { // the jobs and requests failed because of the credentials
		for _, want := range []string{"invalid credentials", "chat model", "redeem code of Example ID"} {
			if !strings.Contains(replicaLogs.all(), want) {
				return "no replica logged " + want
			}
		}
		return ""
	})
	var texts []string
	resp, err := http.Get("http://" + metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	texts = append(texts, string(text))
	if err := forColumns(database.OwnerURL, func(column, text string) { texts = append(texts, column+"\n"+text) }); err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		if names := secrets.Find(text); len(names) > 0 {
			t.Errorf("%v in %.40s", names, text)
		}
	}
}

// signInWithWrongSecret signs in at the identity provider, which rejects the client secret.
func signInWithWrongSecret(t *testing.T, server string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	get := func(address string, want int) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := browser.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Fatalf("GET %s: %s, want %d", address, resp.Status, want)
		}
		return resp
	}
	to, err := get(server+"/sign-in/with/0", http.StatusSeeOther).Location()
	if err != nil {
		t.Fatal(err)
	}
	code := "code-" + postgrestest.NewToken(t)
	secrets.Add("code of the identity provider", code)
	get(server+"/sign-in/callback?"+url.Values{"code": {code}, "state": {to.Query().Get("state")}}.Encode(), http.StatusInternalServerError)
}

// TestSecretsOfBrokenConfiguration starts commands with settings that are wrong in one
// place. Their output does not contain the credentials next to it.
func TestSecretsOfBrokenConfiguration(t *testing.T) {
	t.Parallel()
	password := "pw-" + postgrestest.NewToken(t)
	broken := filepath.Join(t.TempDir(), "providers.json")
	writeJSON(t, broken, []map[string]string{{"name": "Example ID", "clientId": "mnemo", "clientSecret": password, "clientSecretFile": "x"}})
	host := strings.SplitN(platform.env["DATABASE_URL"], "@", 2)[1]
	secrets.Add("password of a broken configuration", password)
	for name, env := range map[string][]string{
		"WrongPassword":     {"DATABASE_URL=postgres://mnemo_app:" + password + "@" + host},
		"BrokenURL":         {"DATABASE_URL=postgres://mnemo_app:" + password + "@[::1"},
		"BrokenPort":        {"DATABASE_URL=postgres://mnemo_app:" + password + "@localhost:port/mnemo"},
		"NotAURL":           {"DATABASE_URL=host=localhost user=mnemo_app password=" + password + " sslmode=nonsense"},
		"DirectURL":         {"DATABASE_DIRECT_URL=postgres://mnemo_app:" + password + "@[::1"},
		"MilvusPassword":    {"MILVUS_PASSWORD=" + password},
		"MilvusAddress":     {"MILVUS_ADDRESS=https://root:" + password + "@localhost:1"},
		"EmbeddingsURL":     {"MNEMO_EMBEDDER=openai", "MNEMO_EMBEDDINGS_MODEL=m", "MNEMO_EMBEDDINGS_DIMENSIONS=8", "MNEMO_EMBEDDINGS_URL=https://user:" + password + "@[::1"},
		"ChatURL":           {"MNEMO_CHAT_MODEL=m", "MNEMO_CHAT_KEY=" + password, "MNEMO_CHAT_URL=https://user:" + password + "@[::1"},
		"IdentityProviders": {"MNEMO_OIDC_PROVIDERS=" + broken},
		"PublicURL":         {"MNEMO_URL=https://user:" + password + "@mnemo.example.com"},
		"Collector":         {"OTEL_EXPORTER_OTLP_ENDPOINT=http://user:" + password + "@127.0.0.1:1", "MNEMO_LISTEN=nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out := startsNot(t, env...); len(secrets.Find(out)) > 0 {
				t.Errorf("the output contains %v:\n%s", secrets.Find(out), out)
			}
		})
	}
}

// startsNot runs `mnemo serve` with settings with which it cannot serve, for as long as it
// retries to no effect, and returns its output.
func startsNot(t *testing.T, env ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, mnemo, "serve", "--log-level=debug")
	cmd.Env = append(os.Environ(),
		"DATABASE_URL="+platform.env["DATABASE_URL"], "MILVUS_ADDRESS="+platform.env["MILVUS_ADDRESS"],
		"MILVUS_USERNAME="+platform.env["MILVUS_USERNAME"], "MILVUS_PASSWORD="+platform.env["MILVUS_PASSWORD"],
		"MNEMO_MODEL_DIR="+platform.env["MNEMO_MODEL_DIR"], "MNEMO_ONNXRUNTIME="+platform.env["MNEMO_ONNXRUNTIME"],
		"MNEMO_LISTEN=127.0.0.1:0", "MNEMO_METRICS_LISTEN=127.0.0.1:0")
	cmd.Env = append(cmd.Env, env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err == nil {
		t.Errorf("mnemo serve ended without an error:\n%s", &out)
	}
	return out.String()
}

func writeJSON(t *testing.T, file string, v any) {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}
