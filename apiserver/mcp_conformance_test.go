package apiserver

import (
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// The official conformance suite passes. It cannot send a token, so a proxy adds it.
func TestMCPConformance(t *testing.T) {
	t.Parallel()
	cache, err := devenv.OpenCache(nil)
	if err != nil {
		t.Fatal(err)
	}
	suite, err := devenv.MCPConformanceSuite(t.Context(), cache)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewUnstartedServer(nil)
	public := &url.URL{Scheme: "http", Host: proxy.Listener.Addr().String()}
	h := newTestServer(t, func(c *Config) { c.URL = public })
	proxy.Config.Handler = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: h.addr})
		r.Out.Host = r.In.Host
		r.Out.Header.Set("Authorization", "Bearer "+h.alice)
	}}
	proxy.Start()
	t.Cleanup(proxy.Close)

	out, err := suite.Server(t.Context(), public.String()+pathMCP, "testdata/mcp_conformance.yaml").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, scenario := range []string{"server-initialize", "logging-set-level", "ping", "tools-list", "server-sse-multiple-streams", "resources-list", "prompts-list", "dns-rebinding-protection"} {
		if !strings.Contains(string(out), "\u2713 "+scenario+":") {
			t.Errorf("%s did not pass:\n%s", scenario, out)
		}
	}
}
