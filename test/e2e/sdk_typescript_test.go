package e2e_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/sdk"
)

// TestTypeScriptSDK builds the npm package, unpacks it as npm does, and runs the tests
// of the package and the documented examples with it.
func TestTypeScriptSDK(t *testing.T) {
	t.Parallel()
	tools := openSDKTools(t)
	tarball := buildNpm(t, tools)
	dir := newProject(t, tools, tarball)
	applyTenant(t, "typescript", "  quota: {pageTokens: 30}\n  applications: [{name: shop, scopes: [read, write]}]\n")
	env := append(os.Environ(), "MNEMO_URL="+platform.env["MNEMO_URL"], "MNEMO_API_KEY="+secret(t, "typescript", "alice", "token"),
		"MNEMO_APPLICATION_KEY="+applicationKey(t, "typescript", "shop"))

	tests := tools.Program(t.Context(), "--test", "--test-reporter=tap")
	tests.Dir, tests.Env = dir, env
	out := output(t, tests)
	if passed := regexp.MustCompile(`(?m)^# pass (\d+)$`).FindStringSubmatch(out); passed == nil || atoi(t, passed[1]) < 21 {
		t.Errorf("fewer than 21 tests passed:\n%s", out)
	}

	var files []string
	for i, block := range snippets(t, "typescript.md", "ts") {
		name := "block" + strconv.Itoa(i+1) + ".mts"
		writeText(t, filepath.Join(dir, name), block)
		files = append(files, name)
	}
	writeExport(t, dir)
	for _, name := range files {
		cmd := tools.Program(t.Context(), name)
		cmd.Dir, cmd.Env = dir, env
		output(t, cmd)
	}

	installed := npmInstall(t, tools, tarball)
	writeText(t, filepath.Join(installed, files[0]), string(readFile(t, filepath.Join(dir, files[0]))))
	first := tools.Program(t.Context(), files[0])
	first.Dir, first.Env = installed, env
	output(t, first)
}

// npmInstall executes the documented commands with a registry that has only the package,
// and returns the directory.
func npmInstall(t *testing.T, tools devenv.SDKTools, tarball []byte) string {
	t.Helper()
	unpacked := t.TempDir()
	unpack(t, tarball, unpacked)
	var manifest map[string]any
	if err := json.Unmarshal(readFile(t, filepath.Join(unpacked, "package.json")), &manifest); err != nil {
		t.Fatal(err)
	}
	var registry *httptest.Server
	registry = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/mnemo-client":
			sum := sha512.Sum512(tarball)
			manifest["dist"] = map[string]any{"tarball": registry.URL + "/package.tgz", "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}
			_ = json.NewEncoder(w).Encode(map[string]any{"name": "mnemo-client", "dist-tags": map[string]string{"latest": packagesVersion},
				"versions": map[string]any{packagesVersion: manifest}})
		case "/package.tgz":
			_, _ = w.Write(tarball)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(registry.Close)
	dir := t.TempDir()
	npm := tools.Npm(t.Context())
	for _, block := range snippets(t, "typescript.md", "sh") {
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", `npm() { `+strings.Join(npm.Args, " ")+` "$@"; }`+"\n"+block)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "npm_config_registry="+registry.URL, "npm_config_cache="+t.TempDir(), "npm_config_audit=false",
			"npm_config_update_notifier=false")
		output(t, cmd)
	}
	return dir
}

// buildNpm builds the npm package twice, compares the files and returns one.
func buildNpm(t *testing.T, tools devenv.SDKTools) []byte {
	t.Helper()
	var built [2][]byte
	for i := range built {
		dir := t.TempDir()
		if err := sdk.BuildTypeScript(t.Context(), tools, absolute("../.."), packagesVersion, dir); err != nil {
			t.Fatal(err)
		}
		built[i] = readFile(t, filepath.Join(dir, "mnemo-client-"+packagesVersion+".tgz"))
	}
	if !bytes.Equal(built[0], built[1]) {
		t.Error("two builds of the npm package differ")
	}
	return built[0]
}

// newProject returns a directory in which the package and those of its adapters are
// installed, with the tests of the package.
func newProject(t *testing.T, tools devenv.SDKTools, tarball []byte) string {
	t.Helper()
	dir := t.TempDir()
	modules := filepath.Join(dir, "node_modules")
	unpack(t, tarball, filepath.Join(modules, "mnemo-client"))
	entries, err := os.ReadDir(tools.Modules())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.Symlink(filepath.Join(tools.Modules(), e.Name()), filepath.Join(modules, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(dir, os.DirFS("../../sdk/typescript/test")); err != nil {
		t.Fatal(err)
	}
	writeText(t, filepath.Join(dir, "package.json"), `{"type": "module"}`)
	return dir
}

// unpack writes the files of an npm package to dir.
func unpack(t *testing.T, tarball []byte, dir string) {
	t.Helper()
	uncompressed, err := gzip.NewReader(bytes.NewReader(tarball))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(uncompressed); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		writeText(t, filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(header.Name, "package/"))), string(content))
	}
}

// snippets returns the code blocks of a language in a file of docs/connect.
func snippets(t *testing.T, file, language string) []string {
	t.Helper()
	text := readFile(t, filepath.Join("../../docs/connect", file))
	var blocks []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllSubmatch(text, -1) {
		blocks = append(blocks, string(m[1]))
	}
	if len(blocks) == 0 {
		t.Fatalf("%s has no blocks of %s", file, language)
	}
	return blocks
}

// writeExport writes the file that the examples import.
func writeExport(t *testing.T, dir string) {
	t.Helper()
	writeText(t, filepath.Join(dir, "conversations.json"), `[{"uuid":"docs","name":"Night train","created_at":"2025-05-09T14:30:00Z",`+
		`"updated_at":"2025-05-09T14:31:00Z","chat_messages":[{"uuid":"a","sender":"human","text":"Which seat?","created_at":"2025-05-09T14:30:00Z"}]}]`)
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// output runs a command that must succeed and returns its standard output.
func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(cmd.Args, " "), err, out, stderr.Bytes())
	}
	return strings.TrimSpace(string(out))
}
