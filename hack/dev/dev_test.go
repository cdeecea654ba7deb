package main

import (
	"bufio"
	"context"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/api/client"
)

// TestDev starts Mnemo in an empty directory, and again in the same: the user stores a memory and finds it, also after the
// restart, and the link signs in to the dashboard.
func TestDev(t *testing.T) {
	t.Parallel()
	o := options{dir: t.TempDir()}
	first := startDev(t, o)
	c, err := client.New(first.url, first.token)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateMemory(t.Context(), nil, client.CreateMemoryRequest{Text: "2026-11-20 My sister Ana moved to Lisbon."}); err != nil {
		t.Fatal(err)
	}
	first.expectFound(t)
	first.signIn(t)
	first.stop(t)

	second := startDev(t, o)
	if diff := cmp.Diff([]string{first.url, first.token}, []string{second.url, second.token}); diff != "" {
		t.Errorf("URL and token of the second start (-first +second):\n%s", diff)
	}
	second.expectFound(t)
	second.stop(t)
	records, err := os.ReadDir(filepath.Join(o.dir, "pids"))
	if err != nil || len(records) != 0 {
		t.Errorf("records of processes after the end: %v, error %v", records, err)
	}
}

// devRun is a run of dev and its output.
type devRun struct {
	url, token, link string
	cancel           func()
	ended            chan error
}

func startDev(t *testing.T, o options) *devRun {
	t.Helper()
	output, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	o.stdout = write
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	d := &devRun{cancel: cancel, ended: make(chan error, 1)}
	go func() {
		d.ended <- dev(ctx, o)
		_ = write.Close()
	}()
	d.read(t, output)
	return d
}

// read reads the output until it names the token, and discards the following lines.
func (d *devRun) read(t *testing.T, output *os.File) {
	t.Helper()
	printed := regexp.MustCompile(`^  (dashboard|API|token) +(\S+)`)
	lines := bufio.NewScanner(output)
	for d.token == "" && lines.Scan() {
		if m := printed.FindStringSubmatch(lines.Text()); m != nil {
			*map[string]*string{"dashboard": &d.link, "API": &d.url, "token": &d.token}[m[1]] = m[2]
		}
	}
	if d.token == "" {
		t.Fatalf("dev ended without printing a token: %v", <-d.ended)
	}
	go func() {
		defer output.Close()
		for lines.Scan() { // a full pipe would block the program
		}
	}()
}

func (d *devRun) expectFound(t *testing.T) {
	t.Helper()
	c, err := client.New(d.url, d.token)
	if err != nil {
		t.Fatal(err)
	}
	query := "which city does my sibling live in?"
	found, err := c.ListMemories(t.Context(), &client.ListMemoriesParams{Query: &query})
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Body.Memories) != 1 {
		t.Errorf("a search finds %d memories, want 1", len(found.Body.Memories))
	}
}

// signIn follows the link as a browser does.
func (d *devRun) signIn(t *testing.T) {
	t.Helper()
	page, code, _ := strings.Cut(d.link, "#")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	form := strings.NewReader(url.Values{"code": {code}}.Encode())
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, page, form)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	response, err := (&http.Client{Jar: jar}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if at := response.Request.URL.Path; response.StatusCode != http.StatusOK || strings.HasPrefix(at, "/sign-in") {
		t.Errorf("the link leads to %s with status %s, want a page of the dashboard", at, response.Status)
	}
}

func (d *devRun) stop(t *testing.T) {
	t.Helper()
	d.cancel()
	if err := <-d.ended; err != nil {
		t.Fatalf("dev: %v", err)
	}
}
