package apiserver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

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
	for _, origin := range []string{"https://other.test", "null", "https://app.test.evil.test", "http://app.test"} {
		if got := preflight("/api/memory", origin); got.StatusCode != http.StatusMethodNotAllowed || got.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("preflight of %s: %d %v", origin, got.StatusCode, got.Header)
		}
	}
	if got := preflight("/memories", "https://app.test"); got.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("preflight of the dashboard: %v", got.Header)
	}
}
