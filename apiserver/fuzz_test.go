package apiserver

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/valyala/fasthttp"
	"golang.org/x/net/http/httpguts"
)

// memoryConn is a connection whose input is given and whose output is kept.
type memoryConn struct {
	in  *bytes.Reader
	out bytes.Buffer
}

func (c *memoryConn) Read(p []byte) (int, error)  { return c.in.Read(p) }
func (c *memoryConn) Write(p []byte) (int, error) { return c.out.Write(p) }
func (*memoryConn) Close() error                  { return nil }
func (*memoryConn) LocalAddr() net.Addr           { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080} }
func (*memoryConn) RemoteAddr() net.Addr          { return &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 40000} }

func (*memoryConn) SetDeadline(time.Time) error      { return nil }
func (*memoryConn) SetReadDeadline(time.Time) error  { return nil }
func (*memoryConn) SetWriteDeadline(time.Time) error { return nil }

// newFuzzServer starts a server on fake stores and waits until its routes are built.
func newFuzzServer(f *testing.F, change ...func(*Config)) *testServer {
	f.Helper()
	h := newTestServer(f, change...)
	resp, err := http.Get("http://" + h.addr + pathHealthz)
	if err != nil {
		f.Fatal(err)
	}
	_ = resp.Body.Close()
	return h
}

// exchange sends the bytes on a new connection and returns the responses.
func (h *testServer) exchange(t *testing.T, raw string) (out []answer) {
	t.Helper()
	conn := &memoryConn{in: bytes.NewReader([]byte(raw))}
	_ = h.app.Server().ServeConn(conn) // an error of the client
	in := bufio.NewReader(&conn.out)
	for {
		if _, err := in.Peek(1); err != nil {
			return out
		}
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("response to %q: %v", raw, err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatalf("body of the response to %q: %v", raw, err)
		}
		if resp.StatusCode == http.StatusContinue {
			continue // the response follows
		}
		out = append(out, answer{resp.StatusCode, resp.Header, string(body), resp.Close})
	}
}

// request sends one request with the token of alice, and checks that the server
// handles it without an internal error and as documented.
func (h *testServer) request(t *testing.T, method, path string, header http.Header, body string) {
	t.Helper()
	header.Set("Host", "mnemo.test")
	header.Set("Authorization", "Bearer "+h.alice)
	header.Set("Connection", "close")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	var raw bytes.Buffer
	raw.WriteString(method + " " + path + " HTTP/1.1\r\n")
	if err := header.Write(&raw); err != nil {
		t.Fatal(err)
	}
	raw.WriteString("\r\n" + body)
	got := h.exchange(t, raw.String())
	if len(got) != 1 {
		t.Fatalf("%q has %d responses", raw.String(), len(got))
	}
	if got[0].status >= http.StatusInternalServerError {
		t.Fatalf("%q: %d %s\n%.2000s", raw.String(), got[0].status, got[0].body, h.log)
	}
	if !utf8.ValidString(got[0].body) && got[0].header.Get("Content-Type") != "application/zip" {
		t.Fatalf("%q: the body %q is not UTF-8", raw.String(), got[0].body)
	}
	for name := range header {
		// Header.Write replaces line breaks.
		if v := header.Get(name); !strings.ContainsAny(v, "\r\n") && !httpguts.ValidHeaderFieldValue(v) && got[0].status != http.StatusBadRequest {
			t.Fatalf("%q: %d %s, want 400", raw.String(), got[0].status, got[0].body)
		}
	}
	if got[0].header.Get("RateLimit-Limit") == "" && got[0].status == http.StatusBadRequest {
		return // not HTTP, so no route was reached
	}
	if _, documented := theContract().route(method, path); documented {
		theContract().see(t, method, path, got[0])
	}
}

// FuzzRequest sends requests with any path, query, header and body to every route of
// the API.
func FuzzRequest(f *testing.F) {
	h := newFuzzServer(f)
	routes := theContract().routes
	for i, r := range routes {
		f.Add(byte(i), "0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e07", "count=2&skip=1&page=1&query=last+may&dateFrom=2025-05-09&dateTo=2025-05-09T14:30&all=1", "k-1", `{"text":"window seat","bucketId":"1"}`)
		if strings.HasSuffix(r.pattern, "/recall") {
			f.Add(byte(i), "1", "bucketId=1e0", "k", `{"queries":[{"query":"a","maxTokens":5}],"before":"2025-05","conversationHistory":[null]}`)
		}
		if strings.HasSuffix(r.pattern, "custom-online") {
			f.Add(byte(i), "", "", "k", ingestText)
		}
	}
	f.Fuzz(func(t *testing.T, route byte, parameter, query, key, body string) {
		r := routes[int(route)%len(routes)]
		path := pathParameter.ReplaceAllLiteralString(r.pattern, url.PathEscape(parameter))
		if !r.form.MatchString(path) || strings.ContainsAny(parameter, `/\`) {
			return // no route has an empty parameter or an encoded slash
		}
		if values, err := url.ParseQuery(query); err == nil && len(values) > 0 {
			path += "?" + values.Encode()
		}
		header := http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {key}}
		h.request(t, r.method, path, header, body)
	})
}

// FuzzMCP sends any message to the MCP endpoint. Each response is one JSON document.
func FuzzMCP(f *testing.F) {
	h := newFuzzServer(f)
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":"x","method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"store_memory","arguments":{"text":"a","bucketId":1},"_meta":{"mnemo.dev/idempotencyKey":"k"}}}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"get_full_conversation","arguments":{"conversationId":"1","cursor":"1.5"}}}`,
		`{"jsonrpc":"2.0","id":4,"method":"resources/read","params":{"uri":"mnemo://conversations/1?cursor=0.3"}}`,
		`{"jsonrpc":"2.0","id":5,"method":"resources/list","params":{"cursor":"25"}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`,
	} {
		f.Add("2025-06-18", "session", message)
	}
	f.Fuzz(func(t *testing.T, version, session, message string) {
		h.request(t, "POST", pathMCP, http.Header{"Mcp-Protocol-Version": {version}, "Mcp-Session-Id": {session}}, message)
	})
}

// FuzzUpload sends any form to the import route.
func FuzzUpload(f *testing.F) {
	h := newFuzzServer(f)
	const part = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.json\"\r\n\r\n[]\r\n"
	f.Add("multipart/form-data; boundary=b", part+"--b--\r\n")
	f.Add("multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=platform\r\n\r\nclaude\r\n"+part+"--b--")
	f.Add("multipart/form-data; boundary=b", part+part+"--b--\r\n")
	f.Add("multipart/form-data; boundary=\"b", part)
	f.Fuzz(func(t *testing.T, contentType, body string) {
		h.request(t, "POST", "/api/chat-history/import", http.Header{"Content-Type": {contentType}}, body)
	})
}

// FuzzHTTP sends any bytes. The server must read them as the same requests as
// net/http, a second implementation, or reject them and close the connection.
func FuzzHTTP(f *testing.F) {
	h := newFuzzServer(f)
	const host = " HTTP/1.1\r\nHost: x\r\n"
	for _, raw := range []string{
		"GET /healthz" + host + "\r\n",
		"GET /healthz" + host + "\r\nGET /readyz" + host + "\r\n",
		"POST /api/memory" + host + "Content-Length: 2\r\n\r\n{}GET /readyz" + host + "\r\n",
		"POST /register" + host + "Transfer-Encoding: chunked\r\n\r\n2;x=y\r\n{}\r\n0\r\nA: b\r\n\r\nGET /readyz" + host + "\r\n",
		"POST /mcp" + host + "Content-Length : 5\r\n\r\nGET /",
		"GET /healthz" + host + "X: \x00\r\n\r\n",
		"GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.0\r\n\r\n",
		"GET http://y/healthz" + host + "Forwarded: for=1;host=z\r\nX-Forwarded-For: 1.2.3.4, ::1\r\nX-Forwarded-Proto: https\r\n\r\n",
		"GET /api/export" + host + "Range: bytes=0-1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
		"OPTIONS * HTTP/1.1\r\nHost:\r\nAuthorization: Bearer x\r\n\r\n",
		"\r\n\r\nGET /healthz" + host + "\r\n",
	} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if strings.Contains(raw, "HEAD") {
			return // whose responses have no body
		}
		read := requestsOf(raw)
		for i, got := range h.exchange(t, raw) {
			if got.status >= http.StatusInternalServerError && got.status != http.StatusNotImplemented {
				t.Fatalf("%q: %d %s\n%.2000s", raw, got.status, got.body, h.log)
			}
			if i >= read && !got.close {
				t.Fatalf("%q: net/http reads %d requests, and response %d is %d %s", raw, read, i, got.status, got.body)
			}
		}
	})
}

// requestsOf returns the number of requests that net/http reads. The targets are
// replaced, because it rejects some that do not affect where a request ends.
func requestsOf(raw string) (n int) {
	for {
		raw = strings.TrimLeft(raw, "\r\n") // RFC 9112, 2.2
		line, headers, ok := strings.Cut(raw, "\n")
		method, _, _ := strings.Cut(line, " ")
		version := line[strings.LastIndexByte(line, ' ')+1:]
		if !ok {
			return n
		}
		in := bufio.NewReader(strings.NewReader(method + " / " + version + "\n" + headers))
		r, err := http.ReadRequest(in)
		if err != nil {
			return n
		}
		n++
		if _, err := io.Copy(io.Discard, r.Body); err != nil || r.Close {
			return n
		}
		left, err := io.ReadAll(in)
		if err != nil {
			return n
		}
		raw = string(left)
	}
}

// FuzzForm: a form of the OAuth endpoints has one value per parameter, except resource.
func FuzzForm(f *testing.F) {
	h := newFuzzServer(f)
	for _, form := range []string{"grant_type=refresh_token&refresh_token=mnr_x&client_id=a", "resource=a&resource=b", "code=a&code=b", "a=%zz", "a;b"} {
		f.Add("application/x-www-form-urlencoded", form)
	}
	f.Fuzz(func(t *testing.T, contentType, form string) {
		var ctx fasthttp.RequestCtx
		ctx.Init(&fasthttp.Request{}, nil, nil)
		ctx.Request.Header.SetContentType(contentType)
		ctx.Request.SetBodyStream(strings.NewReader(form), len(form))
		c := h.app.AcquireCtx(&ctx)
		defer h.app.ReleaseCtx(c)
		values, err := readForm(c)
		if err != nil {
			return
		}
		for name, list := range values {
			if len(list) > 1 && name != "resource" {
				t.Fatalf("%q: %s has the values %q", form, name, list)
			}
		}
	})
}
