package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/api/client"
)

// importServer is a server that accepts files and records their names and contents.
func importServer(t *testing.T) (url string, got func() []string) {
	t.Helper()
	var files []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			status := `"done","failed":0,"errors":[]`
			if strings.HasSuffix(r.URL.Path, "/bad") {
				status = `"failed","failed":0,"errors":[{"conversation":"","error":"it looks like text"}]`
			}
			fmt.Fprintf(w, `{"importId":"i","platform":"codex","status":%s,"total":1,"imported":1,"indexed":1,"startedAt":"2026-01-01T00:00:00Z","finishedAt":null,"warnings":[]}`, status)
			return
		}
		file, header, err := r.FormFile("file")
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		data, err := io.ReadAll(file)
		if err != nil {
			t.Error(err)
		}
		files = append(files, fmt.Sprintf("%s=%s length=%t", header.Filename, data, r.ContentLength > 0))
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprintf(w, `{"importId":%q}`, data)
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []string { return files }
}

// Not parallel: it replaces standard input.
func TestImportSeveralFiles(t *testing.T) {
	url, got := importServer(t)
	dir := t.TempDir()
	one, two, input := filepath.Join(dir, "one.json"), filepath.Join(dir, "two.csv"), filepath.Join(dir, "input")
	for name, text := range map[string]string{one: "bad", two: "two", input: "three"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in, err := os.Open(input)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	before := os.Stdin
	os.Stdin = in
	defer func() { os.Stdin = before }()
	var out, errs bytes.Buffer
	c := importCommand{remoteFlags: remoteFlags{URL: url, Token: "mn_x"}, Files: []string{one, two, "-"}}
	err = c.Run(t.Context(), terminal{out: &out, err: &errs})
	if err == nil || !strings.Contains(err.Error(), "one.json: import i failed") {
		t.Errorf("Run = %v, want the failure of one.json", err)
	}
	want := "one.json=bad length=true|two.csv=two length=true|-=three length=false"
	if files := strings.Join(got(), "|"); files != want {
		t.Errorf("the server received %s, want %s", files, want)
	}
	if n := strings.Count(out.String(), "1 created"); n != 2 {
		t.Errorf("%d imports are reported in %q, want 2", n, out.String())
	}
	if !strings.Contains(errs.String(), "it looks like text") {
		t.Errorf("the reason is missing from %q", errs.String())
	}
}

// The shell passes the output of a command as a pipe: mnemo import <(zcat a.gz).
func TestImportReadsPipes(t *testing.T) {
	t.Parallel()
	url, got := importServer(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("piped"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	c := importCommand{remoteFlags: remoteFlags{URL: url, Token: "mn_x"}, Files: []string{fmt.Sprintf("/dev/fd/%d", r.Fd())}}
	if err := c.Run(t.Context(), terminal{out: io.Discard}); err != nil {
		t.Error(err)
	}
	if files := strings.Join(got(), "|"); !strings.HasSuffix(files, "=piped length=false") {
		t.Errorf("the server received %q", files)
	}
}

// Nothing is uploaded if a file is missing.
func TestImportChecksFilesFirst(t *testing.T) {
	t.Parallel()
	url, got := importServer(t)
	dir := t.TempDir()
	name := filepath.Join(dir, "a.json")
	if err := os.WriteFile(name, []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, files := range map[string][]string{
		"no such file":         {name, filepath.Join(dir, "missing.json")},
		"is a directory":       {name, dir},
		"must not be repeated": {"-", "-"},
	} {
		c := importCommand{remoteFlags: remoteFlags{URL: url, Token: "mn_x"}, Files: files}
		if err := c.Run(t.Context(), terminal{out: io.Discard}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Run of %v = %v, want %q", files, err, want)
		}
	}
	if n := len(got()); n != 0 {
		t.Errorf("%d files were uploaded, want 0", n)
	}
}

// The name of standard input is an argument, not a flag.
func TestImportReadsStandardInput(t *testing.T) {
	url, got := importServer(t)
	t.Setenv("MNEMO_URL", url)
	t.Setenv("MNEMO_TOKEN", "mn_x")
	in, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	before := os.Stdin
	os.Stdin = in
	defer func() { os.Stdin = before }()
	if err := run(t.Context(), []string{"import", "--json", "--platform", "claude-code", "-"}); err != nil {
		t.Fatal(err)
	}
	if files := got(); len(files) != 1 || !strings.HasPrefix(files[0], "-=") {
		t.Errorf("the server received %v, want standard input", files)
	}
}

// The reason of an error is that of the server: the file may be intact.
func TestImportReportsErrors(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in        client.Import
		err, want string
	}{
		"the account is used": {
			client.Import{ImportID: "i", Status: client.ImportStatusFailed, Errors: []client.ImportError{{Error: "only into an empty account"}}},
			"import i failed", "mnemo: only into an empty account\n",
		},
		"a part was stored": {
			client.Import{ImportID: "i", Status: client.ImportStatusFailed, Updated: 1, Errors: []client.ImportError{{Error: "the file is damaged"}}},
			"import i failed; conversations that were already stored are kept", "mnemo: the file is damaged\n",
		},
		"single conversations": {
			client.Import{
				ImportID: "i", Status: client.ImportStatusDone, Failed: 2,
				Errors: []client.ImportError{{Conversation: "conversation 1 of a.json", Error: "too deep"}, {Conversation: "c-7", Error: "too large"}},
			},
			"2 conversations were not imported", "mnemo: conversation 1 of a.json: too deep\nmnemo: c-7: too large\n",
		},
	} {
		var notes bytes.Buffer
		err := (&importCommand{}).report(terminal{out: io.Discard, err: &notes}, tc.in)
		if err == nil || err.Error() != tc.err {
			t.Errorf("%s: error %v, want %s", name, err, tc.err)
		}
		if notes.String() != tc.want {
			t.Errorf("%s: %q is printed, want %q", name, notes.String(), tc.want)
		}
	}
}
