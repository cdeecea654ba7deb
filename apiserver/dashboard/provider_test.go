package dashboard_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/mnemo-dev/mnemo/apiserver"
	"github.com/mnemo-dev/mnemo/apiserver/dashboard"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
)

const clientSecret = "a client/secret"

// faulty is an identity provider whose errors depend on the redeemed code.
type faulty struct {
	*httptest.Server
	discover func(http.ResponseWriter) bool // whether it answers as it should

	mu    sync.Mutex
	asked map[string]int // by path, and by code
}

func newFaulty(t *testing.T) *faulty {
	t.Helper()
	f := &faulty{asked: map[string]int{}, discover: func(http.ResponseWriter) bool { return true }}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *faulty) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.asked[r.URL.Path]++
	f.asked[r.FormValue("code")]++
	discover := f.discover
	f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if strings.HasPrefix(r.URL.Path, "/.well-known/") {
		if discover(w) {
			_ = json.NewEncoder(w).Encode(map[string]string{"issuer": f.URL, "authorization_endpoint": f.URL + "/auth", "token_endpoint": f.URL + "/token", "jwks_uri": f.URL + "/keys"})
		}
		return
	}
	switch r.FormValue("code") {
	case "cut":
		panic(http.ErrAbortHandler)
	case "unavailable":
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, "<p>inner words")
	case "unknown-client":
		w.WriteHeader(http.StatusUnauthorized)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": "invalid_client", // it quotes the request
			"error_description": "no client with " + r.Form.Encode() + strings.Repeat("…", 1000)})
	case "in-the-form":
		if _, _, header := r.BasicAuth(); header {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":"invalid_client"}`)
			return
		}
		_, _ = io.WriteString(w, `{"access_token":"x","token_type":"Bearer","id_token":"x"}`)
	default:
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":"invalid_grant"}`)
	}
}

// times returns the number of requests of a kind.
func (f *faulty) times(what string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[what]
}

// journal is a log buffer.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

// taken returns and clears the log.
func (j *journal) taken() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	defer j.text.Reset()
	return j.text.String()
}

// signInServer starts a server with the provider and trusted proxies, and returns
// its log.
func signInServer(t *testing.T, p *faulty) (visitor, *journal) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	db, log := postgrestest.New(t), &journal{}
	server := apiserver.New(apiserver.Config{
		Tokens: db, Sessions: db, Access: db, UserTokens: db, Holdings: db.Holdings, Log: slog.New(slog.NewTextHandler(log, nil)),
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
		Providers:      []*dashboard.Provider{{Name: "Example ID", Issuer: p.URL, ClientID: "mnemo", ClientSecret: clientSecret}},
	})
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		_ = server.Shutdown(context.Background())
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return visitor{client, "http://" + l.Addr().String()}, log
}

// comesBack requests the callback with a code and a forged sign-in.
func (v visitor) comesBack(t *testing.T, code, from string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, v.url+"/sign-in/callback?state=s&code="+code, nil)
	if err != nil {
		t.Fatal(err)
	}
	begun := base64.RawURLEncoding.EncodeToString([]byte(`{"Provider":0,"State":"s","Nonce":"n","Verifier":"the-verifier","Next":"/authorize?client_id=x"}`))
	r.AddCookie(&http.Cookie{Name: "mnemo_sign_in", Value: begun})
	r.Header.Set("X-Forwarded-For", from)
	return do(t, v.Client, r)
}

// Provider failures are distinguished, logged if necessary, and keep the path to
// return to.
func TestProviderFailures(t *testing.T) {
	t.Parallel()
	p := newFaulty(t)
	v, log := signInServer(t, p)
	for _, tc := range []struct {
		code         string
		status       int
		says, logged string
		asked        int
	}{
		{"forged", http.StatusBadRequest, "Example ID did not confirm the sign-in; try again.", "", 1},
		{"cut", http.StatusServiceUnavailable, "Example ID is unavailable; try again in a moment.", "level=WARN", 1},
		{"unavailable", http.StatusServiceUnavailable, "Example ID is unavailable; try again in a moment.", "502 Bad Gateway", 1},
		{"unknown-client", http.StatusInternalServerError, "details are logged", "401 Unauthorized invalid_client no client with client_id=mnemo&client_secret=(secret)&code=(secret)&code_verifier=(secret)", 2},
		{"in-the-form", http.StatusInternalServerError, "details are logged", "malformed jwt", 2},
		{"in-the-form", http.StatusInternalServerError, "details are logged", "malformed jwt", 3}, // the auth style is cached now
	} {
		status, body := v.comesBack(t, tc.code, "192.0.2.1")
		if status != tc.status || !strings.Contains(body, tc.says) {
			t.Errorf("%s: %d %s, want %d %q", tc.code, status, body, tc.status, tc.says)
		}
		if status != http.StatusInternalServerError && !strings.Contains(body, `name="next" value="/authorize?client_id=x"`) {
			t.Errorf("%s: the page does not lead on: %s", tc.code, body)
		}
		if got := log.taken(); tc.logged == "" && strings.Contains(got, "level=ERROR") || !strings.Contains(got, tc.logged) || strings.Contains(got, "inner words") {
			t.Errorf("%s: logged %q, want %q", tc.code, got, tc.logged)
		}
		if n := p.times(tc.code); n != tc.asked {
			t.Errorf("%s: it was asked %d times, want %d", tc.code, n, tc.asked)
		}
	}
}

// Forged redirects cause a limited number of requests to the provider.
func TestProviderThrottle(t *testing.T) {
	t.Parallel()
	p := newFaulty(t)
	v, _ := signInServer(t, p)
	for n := range 61 {
		want := http.StatusBadRequest
		if n == 60 {
			want = http.StatusTooManyRequests
		}
		if status, body := v.comesBack(t, "forged", "192.0.2.1"); status != want {
			t.Fatalf("made-up answer %d: %d %s", n, status, body)
		}
	}
	if n := p.times("/token"); n != 60 {
		t.Errorf("the provider was asked %d times", n)
	}
	if status, _ := v.comesBack(t, "forged", "192.0.2.2"); status != http.StatusBadRequest {
		t.Errorf("from another address: %d", status)
	}
}

// Concurrent requests share the discovery of an unavailable provider, and requests
// shortly after reuse its error; then discovery is retried.
func TestProviderUnavailable(t *testing.T) {
	t.Parallel()
	p := newFaulty(t)
	v, _ := signInServer(t, p)
	arrived, release := make(chan bool, 100), make(chan bool)
	p.discover = func(w http.ResponseWriter) bool {
		arrived <- true
		<-release
		w.WriteHeader(http.StatusInternalServerError)
		return false
	}
	const discovery = "/.well-known/openid-configuration"
	goes := func() string {
		status, body := v.get(t, "/sign-in/with/0?next=%2Fauthorize%3Fclient_id%3Dx")
		if status != http.StatusServiceUnavailable || !strings.Contains(body, "Example ID is unavailable") || !strings.Contains(body, `name="next" value="/authorize?client_id=x"`) {
			return fmt.Sprintf("while the provider is unavailable: %d %s", status, body)
		}
		return ""
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if complaint := goes(); complaint != "" {
				t.Error(complaint)
			}
		})
	}
	<-arrived
	close(release)
	wg.Wait()
	if complaint := goes(); complaint != "" {
		t.Error(complaint)
	}
	if n := p.times(discovery); n != 1 {
		t.Errorf("the provider was asked %d times", n)
	}
	p.mu.Lock()
	p.discover = func(http.ResponseWriter) bool { return true }
	p.mu.Unlock()
	eventually(t, func() string {
		if status, _ := v.get(t, "/sign-in/with/0"); status != http.StatusSeeOther {
			return fmt.Sprintf("when it is back: %d", status)
		}
		return ""
	})
	if n := p.times(discovery); n != 2 {
		t.Errorf("the provider was asked %d times until it answered", n)
	}
}
