package dashboard_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestAssetsAreCompressed: browsers receive compressed assets, and pages, which may contain
// secrets, are never compressed.
func TestAssetsAreCompressed(t *testing.T) {
	t.Parallel()
	s := newClaimsSite(t, nil, nil)
	for path, want := range map[string]map[string]string{
		"/assets/app.css": {"br, gzip": "br", "gzip": "gzip", "": ""}, "/assets/app.js": {"gzip": "gzip"}, "/sign-in": {"br, gzip": ""},
	} {
		for accepted, encoding := range want {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Accept-Encoding", accepted)
			res, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			if got := res.Header.Get("Content-Encoding"); got != encoding {
				t.Errorf("%s with Accept-Encoding %q has Content-Encoding %q, want %q", path, accepted, got, encoding)
			}
			if encoding != "" && (res.ContentLength > 15<<10 || !strings.Contains(res.Header.Get("Vary"), "Accept-Encoding")) {
				t.Errorf("%s: %d bytes, Vary %q", path, res.ContentLength, res.Header.Get("Vary"))
			}
		}
	}
}
