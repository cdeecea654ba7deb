package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadSections(t *testing.T) {
	t.Parallel()
	const values = `# Header of the file.

# Only for tests.
demo: false
size: ""     # such as 5Gi
# The server.
server:
  # Default: the name
  # of the release.
  host: ""
  port: 5432 # REQUIRED
  # Requests and limits.
  pool:
    size: 20
  tls: {enabled: true, key: ca.crt} # of the server
list: []
`
	got, err := readSections([]byte(values))
	if err != nil {
		t.Fatal(err)
	}
	want := []section{
		{names: []string{"demo", "size"}, values: []value{
			{"demo", "false", "Only for tests."}, {"size", `""`, "such as 5Gi"},
		}},
		{names: []string{"server"}, description: "The server.", values: []value{
			{"server.host", `""`, "Default: the name of the release."},
			{"server.port", "5432", "REQUIRED"},
			{"server.pool", "", "Requests and limits."},
			{"server.pool.size", "20", ""},
			{"server.tls", "{enabled: true, key: ca.crt}", "of the server"},
		}},
		{names: []string{"list"}, values: []value{{"list", "[]", ""}}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(section{}, value{})); diff != "" {
		t.Errorf("readSections: -want +got\n%s", diff)
	}
}

func TestReadSectionsRejectsOtherDocuments(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]string{"list": "[a]", "empty": "", "invalid": "{"} {
		if _, err := readSections([]byte(values)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestREADMELinksAreAbsolute: relative links are broken on Artifact Hub.
func TestREADMELinksAreAbsolute(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../charts/mnemo/README.md")
	if err != nil {
		t.Fatal(err)
	}
	links := regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(string(readme), -1)
	if len(links) < 4 {
		t.Errorf("%d links, want at least 4", len(links))
	}
	for _, link := range links {
		path, found := strings.CutPrefix(link[1], "https://github.com/mnemo-dev/mnemo/blob/main/")
		if !found {
			t.Errorf("link %s is relative", link[1])
		} else if _, err := os.Stat("../../" + path); err != nil {
			t.Errorf("link %s: %v", link[1], err)
		}
	}
}

// TestREADMEIsUpToDate compares the README with values.yaml.
func TestREADMEIsUpToDate(t *testing.T) {
	t.Parallel()
	want, err := generate("../../charts/mnemo")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../charts/mnemo/README.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("charts/mnemo/README.md is out of date; run `make generate`: -want +got\n%s", diff)
	}
}
