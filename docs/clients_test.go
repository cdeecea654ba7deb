package docs_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	required  = regexp.MustCompile(`(?m)^([A-Za-z0-9_.-]+)(?:\[[a-z]+\])?==([0-9][^ \\\n]*)`)
	module    = regexp.MustCompile(`(?m)^(?:require)?\s*(github\.com/\S+) v(\S+)`)
	generator = regexp.MustCompile(`Name:\s+"(openapi-generator-cli)",\s+Version: "([^"]+)"`)
	quoted    = regexp.MustCompile("`([^`]+)`")
	version   = regexp.MustCompile(`\d+(?:\.\d+)+(?:[ab]\d+)?`)
	alias     = regexp.MustCompile(`^npm:(.+)@(.+)$`)
)

// The versions in clients.md are those that the tests use.
func TestClientVersions(t *testing.T) {
	t.Parallel()
	pinned := pinnedVersions(t)
	compared := 0
	for line := range strings.Lines(read(t, "clients.md")) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		var names []string
		for _, m := range quoted.FindAllStringSubmatch(cells[1], -1) {
			if pinned[m[1]] != nil {
				names = append(names, m[1])
			}
		}
		found := version.FindAllString(cells[2], -1)
		if len(names) != len(found) {
			t.Errorf("%d packages with %d versions: %s", len(names), len(found), line)
			continue
		}
		for i, name := range names {
			compared++
			if !pinned[name][found[i]] {
				t.Errorf("%s %s: the tests use %v", name, found[i], pinned[name])
			}
		}
	}
	if compared < 15 {
		t.Errorf("%d versions compared", compared)
	}
}

// pinnedVersions returns the versions of packages by name.
func pinnedVersions(t *testing.T) map[string]map[string]bool {
	t.Helper()
	pinned := map[string]map[string]bool{}
	add := func(name, version string) {
		if pinned[name] == nil {
			pinned[name] = map[string]bool{}
		}
		pinned[name][version] = true
	}
	for _, file := range glob(t, "hack/devenv/*/package.json") {
		var manifest struct{ Dependencies map[string]string }
		if err := json.Unmarshal([]byte(read(t, file)), &manifest); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for name, version := range manifest.Dependencies {
			if of := alias.FindStringSubmatch(version); of != nil {
				name, version = of[1], of[2]
			}
			add(name, version)
		}
	}
	files := append(glob(t, "hack/devenv/*.txt"), glob(t, "hack/devenv/*/*.txt")...)
	for pattern, files := range map[*regexp.Regexp][]string{
		required: files, module: {root + "/go.mod", root + "/hack/tools/oapi-codegen/go.mod"}, generator: {root + "/hack/devenv/generators.go"},
	} {
		for _, file := range files {
			for _, m := range pattern.FindAllStringSubmatch(read(t, file), -1) {
				add(m[1], m[2])
			}
		}
	}
	return pinned
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v, %v", pattern, files, err)
	}
	return files
}
