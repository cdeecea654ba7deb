package apiserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const importPath = "/api/chat-history/import"

// field is a part of a form.
type field struct{ name, value string }

// form encodes a form and returns it with its content type.
func form(t *testing.T, fields ...field) (body, contentType string) {
	t.Helper()
	var b strings.Builder
	w := multipart.NewWriter(&b)
	for _, f := range fields {
		part, err := w.CreateFormFile(f.name, "export.json")
		if f.name == "platform" || f.name == "skipInvalid" {
			part, err = w.CreateFormField(f.name)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(part, f.value); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String(), w.FormDataContentType()
}

// send uploads a form.
func (h *testServer) send(t *testing.T, token string, headers []string, fields ...field) answer {
	t.Helper()
	body, contentType := form(t, fields...)
	return h.call(t, token, "POST", importPath, body, append([]string{"Content-Type", contentType}, headers...)...)
}

func TestImportAcceptsForms(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(c *Config) { c.ImportFile = 3 << 20 })
	big := strings.Repeat("0123456789abcdef", 3<<20/16)
	for name, tc := range map[string]struct {
		fields   []field
		stored   string
		platform string
	}{
		"file only":            {[]field{{"file", "[]"}}, "[]", ""},
		"several chunks":       {[]field{{"file", big}}, big, ""},
		"platform before file": {[]field{{"platform", "claude"}, {"file", "x"}}, "x", "claude"},
		"platform after file":  {[]field{{"file", "y"}, {"platform", "chatgpt"}}, "y", "chatgpt"},
		"skip invalid lines":   {[]field{{"skipInvalid", "true"}, {"file", "s"}}, "s", ""},
		"unknown fields":       {[]field{{"colour", "red"}, {"file", "z"}, {"shape", strings.Repeat("round", 1000)}}, "z", ""},
	} {
		got := h.send(t, h.alice, nil, tc.fields...)
		id, _ := got.json(t)["importId"].(string)
		if got.status != http.StatusAccepted || h.stores.chunk(id) != tc.stored {
			t.Errorf("%s: %d %s, %d bytes stored", name, got.status, got.body, len(h.stores.chunk(id)))
		}
		read := h.ok(t, h.alice, "GET", "/api/chat-history/imports/"+id, "")
		want := fmt.Sprintf(`{"importId":%q,"platform":%q,"status":"queued","total":0,"imported":0,"updated":0,"skipped":0,"blocked":0,"failed":0,`+
			`"errors":[],"startedAt":"2025-05-09T12:00:00.123Z","finishedAt":null,"unchanged":0,"indexed":0,"warnings":[],"file":"export.json"}`, id, tc.platform)
		if strings.TrimSpace(read.body) != want {
			t.Errorf("%s: it reads\n%s, want\n%s", name, read.body, want)
		}
	}
	list := h.ok(t, h.alice, "GET", "/api/chat-history/imports?pageSize=2", "")
	if !strings.Contains(list.body, `"page":1,"pageSize":2,"total":6,"totalPages":3`) || strings.Count(list.body, "importId") != 2 {
		t.Errorf("the list: %s", list.body)
	}
}

// Each file of a request has an import with its name.
func TestImportSeveralFiles(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	const part = "--b\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"%s\"\r\n\r\n%s\r\n"
	long := strings.Repeat("é", 200) + ".zip"
	body := fmt.Sprintf(part, "file", "a.json", "[1]") + fmt.Sprintf(part, "files", "C:\\\\chats\\\\b.json", "[2]") + fmt.Sprintf(part, "file", "../c.json", "[3]") +
		fmt.Sprintf(part, "files", long, "[4]") + "--b\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n[5]\r\n--b--\r\n"
	got := h.call(t, h.alice, "POST", importPath, body, "Content-Type", "multipart/form-data; boundary=b")
	var started startedImportBody
	if err := json.Unmarshal([]byte(got.body), &started); err != nil || got.status != http.StatusAccepted {
		t.Fatalf("%d %s, %v", got.status, got.body, err)
	}
	names := []string{"a.json", "b.json", "c.json", strings.Repeat("é", 127), ""}
	if len(started.Imports) != len(names) {
		t.Fatalf("%d imports, want %d", len(started.Imports), len(names))
	}
	if started.ImportID != started.Imports[0].ImportID {
		t.Errorf("importId %s is not that of the first file", started.ImportID)
	}
	for i, name := range names {
		one := started.Imports[i]
		if want := fmt.Sprintf("[%d]", i+1); one.File != name || h.stores.chunk(one.ImportID) != want {
			t.Errorf("%q: %s of %q, want %s", one.File, h.stores.chunk(one.ImportID), name, want)
		}
		if read := h.ok(t, h.alice, "GET", "/api/chat-history/imports/"+one.ImportID, "").json(t); read["file"] != name {
			t.Errorf("%q reads as %q", name, read["file"])
		}
	}
}

// Names of files are stored without paths and control characters.
func TestFileNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"a.json": "a.json", `C:\fakepath\a.json`: "a.json", " \x07a\n.json ": "a.json", "\xff日本.zip": "日本.zip", "": "", "\u202ea": "a",
	} {
		if got := fileName(name); got != want {
			t.Errorf("fileName(%q) = %q, want %q", name, got, want)
		}
	}
}

// Chunked encoding, as used by clients that do not know the length.
func TestImportStreams(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	file := strings.Repeat("0123456789abcdef", 12<<20/16)
	body, contentType := form(t, field{"file", file})
	r, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, strings.NewReader(body))
		w.CloseWithError(err)
	}()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+h.addr+importPath, r)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+h.alice)
	request.Header.Set("Content-Type", contentType)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if raw, err := io.ReadAll(response.Body); response.StatusCode != http.StatusAccepted {
		t.Errorf("%d %s, %v", response.StatusCode, raw, err)
	}
}

func TestImportRejectsInvalidForms(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(c *Config) { c.ImportFile = 1000 })
	good, contentType := form(t, field{"file", "[]"})
	second, secondType := form(t, field{"file", "[]"}, field{"files", ""})
	together, togetherType := form(t, field{"file", strings.Repeat("x", 600)}, field{"file", strings.Repeat("x", 600)})
	many, manyType := form(t, slices.Repeat([]field{{"file", "[]"}}, importer.MaxUnfinished+1)...)
	none, noneType := form(t, field{"colour", "red"})
	unnamed, unnamedType := form(t, field{"files", "{}"})
	unnamed = strings.Replace(unnamed, `; filename="export.json"`, "", 1)
	empty, emptyType := form(t, field{"file", ""})
	skip, skipType := form(t, field{"skipInvalid", "yes"}, field{"file", "[]"})
	other, otherType := form(t, field{"platform", "eliza"}, field{"file", "[]"})
	large, largeType := form(t, field{"file", strings.Repeat("x", 1001)})
	huge, hugeType := form(t, field{"file", strings.Repeat("x", 2<<20)})
	for name, tc := range map[string]struct {
		body, contentType string
		status            int
		says              string
	}{
		"empty body":         {"", contentType, 400, "the body is required"},
		"JSON body":          {"{}", "application/json", 415, "multipart/form-data"},
		"URL-encoded form":   {"file=x", "application/x-www-form-urlencoded", 415, "multipart/form-data"},
		"no boundary":        {good, "multipart/form-data", 415, "with a boundary"},
		"wrong boundary":     {good, "multipart/form-data; boundary=other", 400, "incomplete or invalid form"},
		"truncated":          {good[:len(good)-30], contentType, 400, "incomplete or invalid form"},
		"no file name":       {unnamed, unnamedType, 400, "each part named files must have a file name"},
		"no file":            {none, noneType, 400, "file is required"},
		"empty file":         {empty, emptyType, 400, "file must not be empty"},
		"empty second file":  {second, secondType, 400, "export.json: file must not be empty"},
		"too many files":     {many, manyType, 400, "a request must contain at most 10 files"},
		"together too large": {together, togetherType, 413, "export.json: the upload must be at most 1000 bytes"},
		"unknown platform":   {other, otherType, 400, "platform must be one of chatgpt, claude, gemini"},
		"unknown option":     {skip, skipType, 400, "skipInvalid must be true or false"},
		"over the limit":     {large, largeType, 413, "at most 1000 bytes"},
		"far over the limit": {huge, hugeType, 413, "at most 1000 bytes"},
	} {
		got := h.call(t, h.alice, "POST", importPath, tc.body, "Content-Type", tc.contentType)
		if message, _ := got.json(t)["error"].(string); got.status != tc.status || !strings.Contains(message, tc.says) {
			t.Errorf("%s: %d %s, want %d with %q", name, got.status, got.body, tc.status, tc.says)
		}
	}
	if got := h.call(t, h.alice, "POST", importPath, good, "Content-Type", contentType, "Content-Encoding", "gzip"); got.status != 415 {
		t.Errorf("compressed: %d %s", got.status, got.body)
	}
	if n := len(h.stores.chunks); n != 0 {
		t.Errorf("%d uploads are left", n)
	}
	h.stores.fail(fault.New(fault.Forbidden, "storage quota exceeded"))
	if got := h.send(t, h.alice, nil, field{"file", "[]"}); got.status != 403 {
		t.Errorf("without storage: %d %s", got.status, got.body)
	}
}

// An upload that is too slow is not reported as an incomplete form.
func TestSlowUploadsAreExplained(t *testing.T) {
	t.Parallel()
	got := brokenForm(fmt.Errorf("multipart: NextPart: %w", httpx.ErrSlowUpload))
	if !strings.Contains(got.Error(), "at least 8 KiB/s") {
		t.Errorf("Error %q, want the minimum rate", got)
	}
}

// An interrupted upload leaves no data behind.
func TestInterruptedImportLeavesNothing(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	body, contentType := form(t, field{"file", strings.Repeat("x", 3<<20)})
	conn, err := net.Dial("tcp", h.addr)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", importPath, h.alice, contentType, len(body))
	if _, err := io.WriteString(conn, body[:2<<20]); err != nil {
		t.Fatal(err)
	}
	h.eventually(t, func() string {
		if h.stores.uploads() == 0 {
			return "nothing of it arrived"
		}
		return ""
	})
	conn.Close()
	h.eventually(t, func() string {
		if n := h.stores.uploads(); n != 0 {
			return fmt.Sprintf("%d uploads are left", n)
		}
		return ""
	})
}

// The same file is the same body, regardless of the boundary.
func TestImportIsRepeatable(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	key := []string{"Idempotency-Key", "k"}
	var seen []tenant.Request
	for _, fields := range [][]field{
		{{"file", "[]"}}, {{"colour", "red"}, {"file", "[]"}}, {{"file", "[1]"}}, {{"file", "[]"}, {"platform", "claude"}}, {{"file", "[]"}, {"files", "[1]"}},
		{{"file", "[]"}, {"skipInvalid", "true"}},
	} {
		if got := h.send(t, h.alice, key, fields...); got.status != http.StatusAccepted {
			t.Fatalf("%d %s", got.status, got.body)
		}
		seen = append(seen, h.stores.lastRequest())
	}
	if seen[0] != seen[1] || seen[0].Route != "import" || seen[0].Key == (tenant.Hash{}) {
		t.Errorf("the same file sent twice is %v and %v", seen[0], seen[1])
	}
	if seen[0] == seen[2] || seen[0] == seen[3] || seen[2] == seen[3] || seen[0] == seen[4] || seen[2] == seen[4] || seen[0] == seen[5] {
		t.Errorf("other files or platforms are the same: %v", seen)
	}
}

// follow opens the event stream of an import.
func (h *testServer) follow(ctx context.Context, t *testing.T, token, id, last string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+h.addr+"/api/chat-history/imports/"+id+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

// event reads the id and data of the next event.
func event(t *testing.T, r *bufio.Reader) (id, data string) {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ends: %v", err)
		}
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), ": "); name {
		case "id":
			id = value
		case "data":
			data = value
		case "":
			if data != "" {
				return id, data
			}
		}
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	id := h.send(t, h.alice, nil, field{"file", "[]"}).json(t)["importId"].(string)
	change := func(f func(*importer.Import)) { h.stores.change(id, f) }

	stream := h.follow(t.Context(), t, h.alice, id, "")
	if stream.StatusCode != http.StatusOK {
		t.Errorf("stream.StatusCode = %d, want %d", stream.StatusCode, http.StatusOK)
	}
	if stream.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf(`Content-Type = %q, want "text/event-stream"`, stream.Header.Get("Content-Type"))
	}
	if stream.Header.Get("Cache-Control") != "no-cache" {
		t.Errorf(`Cache-Control = %q, want "no-cache"`, stream.Header.Get("Cache-Control"))
	}
	r := bufio.NewReader(stream.Body)
	if n, data := event(t, r); n != "1" || !strings.Contains(data, `"status":"queued"`) {
		t.Errorf("event %s %s", n, data)
	}
	change(func(i *importer.Import) { i.Status, i.Total, i.Imported, i.Version = importer.Running, 3, 1, 2 })
	n, data := event(t, r)
	if want := h.ok(t, h.alice, "GET", "/api/chat-history/imports/"+id, "").body; n != "2" || data != strings.TrimSpace(want) {
		t.Errorf("event %s %s, want %s", n, data, want)
	}

	// A client with the current event id receives only later events; a client with an
	// outdated id receives the current status.
	asked := time.Now()
	later := bufio.NewReader(h.follow(t.Context(), t, h.alice, id, "2").Body)
	if took := time.Since(asked); took > heartbeat/2 {
		t.Errorf("a stream without news begins after %s", took)
	}
	stale := bufio.NewReader(h.follow(t.Context(), t, h.alice, id, "1").Body)
	if n, _ := event(t, stale); n != "2" {
		t.Errorf("after event 1 comes %s", n)
	}
	change(func(i *importer.Import) { i.Status, i.Imported, i.Indexed, i.Version = importer.Done, 3, 1, 3 })
	for _, r := range []*bufio.Reader{r, later, stale} {
		if n, data := event(t, r); n != "3" || !strings.Contains(data, `"status":"done"`) {
			t.Errorf("event %s %s", n, data)
		}
	}
	change(func(i *importer.Import) { i.Indexed, i.Version = 3, 4 })
	for _, r := range []*bufio.Reader{r, later, stale} {
		if n, _ := event(t, r); n != "4" {
			t.Errorf("event %s, want the last one", n)
		}
		if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
			t.Errorf("after all is indexed comes %q, %v", rest, err)
		}
	}
	if over := h.follow(t.Context(), t, h.alice, id, "4"); over.StatusCode != http.StatusNoContent {
		t.Errorf("status for a client that has received all events: %d, want 204", over.StatusCode)
	}
	if n, _ := event(t, bufio.NewReader(h.follow(t.Context(), t, h.alice, id, "rubbish").Body)); n != "4" {
		t.Errorf("first event after an invalid Last-Event-ID: %s, want 4", n)
	}
}

// A stream ends when the server shuts down.
func TestEventsEndOnShutdown(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	id := h.send(t, h.alice, nil, field{"file", "[]"}).json(t)["importId"].(string)
	r := bufio.NewReader(h.follow(t.Context(), t, h.alice, id, "").Body)
	event(t, r)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := h.Shutdown(ctx); err != nil {
		t.Errorf("with a stream open the server does not stop: %v", err)
	}
	if _, err := io.ReadAll(r); err != nil {
		t.Errorf("the stream breaks off: %v", err)
	}
}

// A disconnected client releases the resources of its stream.
func TestEventsEndOnDisconnect(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	id := h.send(t, h.alice, nil, field{"file", "[]"}).json(t)["importId"].(string)
	ctx, cancel := context.WithCancel(t.Context())
	r := bufio.NewReader(h.follow(ctx, t, h.alice, id, "").Body)
	event(t, r)
	cancel()
	version := int64(1)
	h.eventually(t, func() string {
		version++ // it notices when it has something to tell
		h.stores.change(id, func(i *importer.Import) { i.Version = version })
		if n := h.app.Server().GetOpenConnectionsCount(); n > 1 {
			return fmt.Sprintf("%d connections are open", n)
		}
		return ""
	})
	var left bytes.Buffer
	if _, err := left.ReadFrom(r); err == nil {
		t.Errorf("the stream went on with %q", left.String())
	}
}
