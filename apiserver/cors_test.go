package apiserver

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/mnemo-dev/mnemo/internal/oauth"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// fromPage is a request of a script; it returns the status and the readable headers, or the
// browser's refusal.
const fromPage = `(async (url, key, user) => {
	const headers = {Authorization: "Bearer " + key};
	if (user) headers["X-Mnemo-User"] = user;
	try {
		const r = await fetch(url + "/api/buckets", {headers});
		return r.status + " id:" + !!r.headers.get("X-Request-Id") + " rate:" + r.headers.get("RateLimit-Limit");
	} catch (e) { return "refused"; }
})`

// Scripts of configured origins call the API from a real browser; those of others cannot.
func TestCORS(t *testing.T) {
	t.Parallel()
	site := func() string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<!doctype html>")) }))
		t.Cleanup(s.Close)
		return s.URL
	}
	configured, ofApplication, ofOther, unknown := site(), site(), site(), site()
	h := newTestServer(t, func(c *Config) { c.AllowedOrigins = []string{configured} })
	key := h.application(t, 50, tenant.AccessRead, func(a *tenant.Application) { a.Origins = []string{ofApplication} })
	h.application(t, 51, tenant.AccessRead, func(a *tenant.Application) { a.Origins = []string{ofOther} })
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(testkit.Chromium(t)), chromedp.NoSandbox,
		chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()), chromedp.Flag("disable-dev-shm-usage", true))
	allocator, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits until Chromium writes no more files
		cancel()
	})
	for _, tc := range []struct{ name, page, token, user, want string }{
		{"a configured origin with a token", configured, h.alice, "", "200 id:true rate:1000000"},
		{"a configured origin with a key", configured, key, "c", "200 id:true rate:1000000"},
		{"the origin of the application", ofApplication, key, "c", "200 id:true rate:1000000"},
		{"the origin of the application with a revoked key", ofApplication, flipped(key), "c", "401 id:true rate:null"},
		{"the origin of the application with a user's token", ofApplication, h.alice, "", "refused"},
		{"the origin of another application", ofOther, key, "c", "refused"},
		{"an unknown origin", unknown, key, "c", "refused"},
	} {
		var got string
		err := chromedp.Run(ctx, chromedp.Navigate(tc.page), chromedp.Evaluate(fromPage+`("http://`+h.addr+`","`+tc.token+`","`+tc.user+`")`, &got,
			func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
		if err != nil || got != tc.want {
			t.Errorf("%s: %q, %v, want %q", tc.name, got, err, tc.want)
		}
	}
}

// A preflight is answered before authentication, for configured origins only.
func TestPreflight(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(c *Config) { c.AllowedOrigins = []string{"https://app.test"} })
	preflight := func(path, origin string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, "http://"+h.addr+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Origin", origin)
		r.Header.Set("Access-Control-Request-Method", "POST")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp
	}
	got := preflight("/api/memory", "https://app.test")
	if got.StatusCode != http.StatusNoContent || got.Header.Get("Access-Control-Allow-Origin") != "https://app.test" || got.Header.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("preflight: %d %v", got.StatusCode, got.Header)
	}
	if vary := strings.Join(got.Header.Values("Vary"), ", "); !strings.Contains(vary, "Origin") || !strings.Contains(got.Header.Get("Access-Control-Allow-Headers"), headerUser) {
		t.Errorf("preflight: %v", got.Header)
	}
	for _, path := range []string{pathMCP, pathResource, pathIssuer, pathRegister, pathToken, pathRevoke} {
		got := preflight(path, "https://app.test")
		if got.StatusCode != http.StatusNoContent || !strings.Contains(got.Header.Get("Access-Control-Allow-Headers"), "Mcp-Protocol-Version") {
			t.Errorf("preflight of %s: %d %v", path, got.StatusCode, got.Header)
		}
	}
	for _, origin := range []string{"https://other.test", "null", "https://app.test.evil.test", "http://app.test"} {
		if got := preflight("/api/memory", origin); got.StatusCode != http.StatusMethodNotAllowed || got.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("preflight of %s: %d %v", origin, got.StatusCode, got.Header)
		}
	}
	if got := preflight("/memories", "https://app.test"); got.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("preflight of the dashboard: %v", got.Header)
	}
}

// A script of an allowed origin uses /mcp, and obtains the token for it.
func TestMCPFromAllowedOrigins(t *testing.T) {
	t.Parallel()
	const page, ofApplication = "https://app.test", "https://application.test"
	h := newTestServer(t, func(c *Config) {
		c.AllowedOrigins = []string{page}
		c.OAuth = oauth.NewService(oauth.Config{URL: &url.URL{Scheme: "https", Host: "mnemo.test"}, Random: rand.Reader, Now: time.Now})
	})
	key := h.application(t, 50, tenant.AccessRead, func(a *tenant.Application) { a.Origins = []string{ofApplication} })
	for name, tc := range map[string]struct {
		origin, token, method, path string
		status                      int
		allowed                     bool
	}{
		"a call":                              {page, h.alice, "POST", pathMCP, 200, true},
		"a call of an application":            {ofApplication, key, "POST", pathMCP, 200, true},
		"a call without a token":              {page, "", "POST", pathMCP, 401, true},
		"the resource metadata":               {page, "", "GET", pathResource, 200, true},
		"the issuer metadata":                 {page, "", "GET", pathIssuer, 200, true},
		"the registration of a client":        {page, "", "POST", pathRegister, 400, true},
		"the exchange of a code":              {page, "", "POST", pathToken, 415, true},
		"the revocation of a token":           {page, "", "POST", pathRevoke, 415, true},
		"a token on a page of an application": {ofApplication, h.alice, "POST", pathMCP, 200, false},
		"a call of another page":              {"https://other.test", h.alice, "POST", pathMCP, 403, false},
		"the issuer metadata, another page":   {"https://other.test", "", "GET", pathIssuer, 200, false},
		"the exchange of a code, other page":  {"https://other.test", "", "POST", pathToken, 415, false},
	} {
		got := h.call(t, tc.token, tc.method, tc.path, ping, "Origin", tc.origin, headerUser, map[string]string{key: "c"}[tc.token])
		if got.status != tc.status {
			t.Errorf("%s: %d %s, want %d", name, got.status, got.body, tc.status)
		}
		if allowed := got.header.Get("Access-Control-Allow-Origin"); (allowed == tc.origin) != tc.allowed {
			t.Errorf("%s: the allowed origin is %q", name, allowed)
		}
		if exposed := got.header.Get("Access-Control-Expose-Headers"); strings.Contains(exposed, "WWW-Authenticate") != tc.allowed {
			t.Errorf("%s: the exposed headers are %q", name, exposed)
		}
	}
}
