package e2e_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// TestMem0Packages runs the unmodified clients and integrations of mem0. Each script has a
// user of its own.
func TestMem0Packages(t *testing.T) {
	t.Parallel()
	cache, err := devenv.OpenCache(nil)
	if err != nil {
		t.Fatal(err)
	}
	packages, err := devenv.OpenMem0Packages(t.Context(), cache)
	if err != nil {
		t.Fatal(err)
	}
	applyUsers(t, "memzero", "  applications: [{name: shop, scopes: [read, write]}]\n", "p1", "p2", "p3", "p4", "n1", "n2", "n3", "cli", "docs")
	python := func(script, user string) {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			site := packages.Python()
			if script == "former.py" {
				site = packages.FormerPython() + string(os.PathListSeparator) + site
			}
			cmd := exec.CommandContext(t.Context(), "python3", absolute("testdata/mem0/"+script))
			cmd.Dir, cmd.Env = t.TempDir(), mem0Env(t, user, "PYTHONPATH="+site, "PYTHONDONTWRITEBYTECODE=1")
			output(t, cmd)
		})
	}
	python("client.py", "p1")
	python("application.py", "p1")
	python("former.py", "p2")
	python("use_llama_index.py", "p3")
	python("use_agent_framework.py", "p4")
	node := func(script, user string) {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			dir := mem0Project(t, packages)
			writeText(t, filepath.Join(dir, script), string(readFile(t, filepath.Join("testdata/mem0", script))))
			cmd := packages.Program(t.Context(), script)
			cmd.Dir, cmd.Env = dir, mem0Env(t, user)
			output(t, cmd)
		})
	}
	node("client.mjs", "n1")
	node("former.mjs", "n2")
	node("vercel.mjs", "n3")
	t.Run("cli", func(t *testing.T) {
		t.Parallel()
		testMem0CLI(t, packages)
	})
	t.Run("docs", func(t *testing.T) {
		t.Parallel()
		testMem0Docs(t, packages)
	})
}

// mem0Env returns the environment of a script, without telemetry.
func mem0Env(t *testing.T, user string, variables ...string) []string {
	t.Helper()
	home := t.TempDir()
	return append(append(os.Environ(), "MNEMO_URL="+platform.env["MNEMO_URL"], "MNEMO_API_KEY="+secret(t, "memzero", user, "token"),
		"MNEMO_APPLICATION_KEY="+applicationKey(t, "memzero", "shop"),
		"MEM0_TELEMETRY=false", "HOME="+home, "MEM0_DIR="+home), variables...)
}

// mem0Project returns a directory in which the npm packages are installed.
func mem0Project(t *testing.T, packages devenv.Mem0Packages) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(packages.Modules(), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// testMem0CLI runs commands of @mem0/cli.
func testMem0CLI(t *testing.T, packages devenv.Mem0Packages) {
	t.Helper()
	env := mem0Env(t, "cli", "MEM0_API_KEY="+secret(t, "memzero", "cli", "token"), "MEM0_BASE_URL="+platform.env["MNEMO_URL"]+"/mem0")
	run := func(args ...string) string {
		t.Helper()
		cmd := packages.Program(t.Context(), append([]string{filepath.Join(packages.Modules(), "@mem0/cli/dist/index.js")}, args...)...)
		cmd.Dir, cmd.Env = t.TempDir(), env
		return output(t, cmd)
	}
	run("add", "Ivan bakes bread on Sundays.", "--user-id", "ivan", "--no-infer", "--output", "json")
	var found []struct{ ID, Memory string }
	if out := run("search", "What does Ivan bake?", "--user-id", "ivan", "--output", "json"); json.Unmarshal([]byte(out), &found) != nil || len(found) != 1 {
		t.Fatalf("search: %s", out)
	}
	for _, step := range []struct {
		want string
		args []string
	}{
		{found[0].Memory, []string{"get", found[0].ID}},
		{found[0].Memory, []string{"list", "--user-id", "ivan"}},
		{"", []string{"update", found[0].ID, "Ivan bakes cakes on Sundays."}},
		{"cakes", []string{"get", found[0].ID}},
		{"ivan", []string{"entity", "list", "users"}},
		{"", []string{"delete", found[0].ID, "--force"}},
		{"", []string{"status"}},
	} {
		if out := run(step.args...); !strings.Contains(out, step.want) {
			t.Errorf("%q: %s, want %q", step.args, out, step.want)
		}
	}
	if out := run("list", "--user-id", "ivan", "--output", "json"); strings.Contains(out, found[0].ID) {
		t.Errorf("after delete: %s", out)
	}
}

// mem0DocsSettings returns the variables that the commands in docs/connect/mem0.md set, in a directory in
// which make up was run.
func mem0DocsSettings(t *testing.T) []string {
	t.Helper()
	script := strings.Join(snippets(t, "mem0.md", "sh"), "\n") + "printenv MNEMO_URL MNEMO_API_KEY"
	values := strings.Fields(afterUp(t, script, [2]string{"MNEMO_TOKEN", secret(t, "memzero", "docs", "token")}))
	if len(values) != 2 {
		t.Fatalf("the commands in docs/connect/mem0.md set %d of 2 variables", len(values))
	}
	return []string{"MNEMO_URL=" + values[0], "MNEMO_API_KEY=" + values[1]}
}

// testMem0Docs runs the examples of docs/connect/mem0.md.
func testMem0Docs(t *testing.T, packages devenv.Mem0Packages) {
	t.Helper()
	env := mem0Env(t, "docs", append(mem0DocsSettings(t), "PYTHONPATH="+packages.Python(), "PYTHONDONTWRITEBYTECODE=1")...)
	for i, block := range snippets(t, "mem0.md", "python") {
		cmd := exec.CommandContext(t.Context(), "python3", "-")
		cmd.Stdin, cmd.Dir, cmd.Env = strings.NewReader(block), t.TempDir(), env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("Python block %d: %v\n%s", i+1, err, out)
		}
	}
	dir := mem0Project(t, packages)
	for i, block := range snippets(t, "mem0.md", "js") {
		name := "block" + strconv.Itoa(i) + ".mjs"
		writeText(t, filepath.Join(dir, name), block)
		cmd := packages.Program(t.Context(), name)
		cmd.Dir, cmd.Env = dir, env
		output(t, cmd)
	}
}
