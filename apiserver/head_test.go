package apiserver

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// Requests that a proxy can read differently are rejected, and their connection is
// closed, so that the rest is not handled as another request.
func TestAmbiguousRequestsAreRejected(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	smuggled := "GET /api/chat-history/count HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + h.alice + "\r\n\r\n"
	length := fmt.Sprintf("%d", len(smuggled))
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(smuggled), smuggled)
	const post, get = "POST /api/memory HTTP/1.1\r\nHost: x\r\n", "GET /api/buckets HTTP/1.1\r\n"
	token := "Authorization: Bearer " + h.alice + "\r\n"
	tests := map[string]struct {
		reason, request, want string
	}{
		"SpaceBeforeColon": {
			reason:  "A proxy that ignores the space forwards the body with this request.",
			request: post + "Content-Length : " + length + "\r\n\r\n" + smuggled, want: "400",
		},
		"TabBeforeColon": {
			reason:  "As above, with chunks.",
			request: post + "Transfer-Encoding\t: chunked\r\n\r\n" + chunked, want: "400",
		},
		"FoldedHeader": {
			reason:  "A continuation line belongs to the previous header for some proxies.",
			request: post + "X-A: 1\r\n Content-Length: " + length + "\r\n\r\n" + smuggled, want: "400",
		},
		"TwoContentLengths": {
			reason:  "The proxy may have used the other one.",
			request: post + "Content-Length: 0\r\nContent-Length: " + length + "\r\n\r\n" + smuggled, want: "400",
		},
		"TwoEncodings": {
			reason:  "The proxy may have used the other one.",
			request: post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n" + chunked, want: "400",
		},
		"NoHost": {
			reason:  "HTTP/1.1 requires Host.",
			request: get + token + "\r\n", want: "400",
		},
		"TwoHosts": {
			reason:  "The proxy may have routed by the other one.",
			request: get + "Host: x\r\nHost: y\r\n" + token + "\r\n", want: "400",
		},
		"TwoTokens": {
			reason:  "A proxy may have authorized the other one.",
			request: get + "Host: x\r\nAuthorization: Bearer x\r\n" + token + "\r\n", want: "400",
		},
		"UnknownVersion": {
			reason:  "The format of other versions is unknown.",
			request: "GET /api/buckets HTTP/9.9\r\nHost: x\r\n" + token + "\r\n", want: "400",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := h.raw(t, tc.request)
			if !strings.HasPrefix(got, "HTTP/1.1 "+tc.want) {
				t.Errorf("%s Answer %q, want %s", tc.reason, got, tc.want)
			}
			if strings.Count(got, "HTTP/1.1 ") != 1 {
				t.Errorf("%s The body was answered as a request: %q", tc.reason, got)
			}
		})
	}
}

// An encoded slash does not separate the segments of a path.
func TestEncodedSlashesAreNotFound(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	for _, path := range []string{"/api%2fbuckets", "/api%2Fbuckets", "/api%5cbuckets"} {
		got := h.raw(t, "GET "+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer "+h.alice+"\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 404") {
			t.Errorf("%s: answer %q, want 404", path, got)
		}
	}
}

// Browsers must not fall back to HTTP if the server is published with HTTPS.
func TestStrictTransportSecurity(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://mnemo.example.com": "max-age=31536000",
		"http://127.0.0.1:8080":     "",
	} {
		base, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		h := newTestServer(t, func(c *Config) { c.URL = base })
		if got := h.call(t, "", "GET", "/healthz", "").header.Get("Strict-Transport-Security"); got != want {
			t.Errorf("%s: header %q, want %q", address, got, want)
		}
	}
}

// An unpaired surrogate in a tool's argument would be stored as U+FFFD.
func TestMCPRejectsUnpairedSurrogates(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	got := h.call(t, h.alice, "POST", pathMCP, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"store_memory","arguments":{"text":"\ud800"}}}`,
		"Accept", "application/json, text/event-stream")
	if want := `params.arguments.text must not contain the unpaired surrogate \ud800`; got.status != 400 || got.json(t)["error"] != want {
		t.Errorf("%d %s, want 400 with %q", got.status, got.body, want)
	}
}
