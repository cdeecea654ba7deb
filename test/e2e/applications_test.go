package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// The commands in docs/applications.md for make up get a key with which the first example works.
func TestApplicationCommands(t *testing.T) {
	t.Parallel()
	applyUsers(t, "appcommands", "", "alice")
	page := "../applications.md"
	var script string
	for _, block := range snippets(t, page, "sh") {
		if strings.Contains(block, "up.env") {
			script = strings.ReplaceAll(block, "acme", "appcommands")
		}
	}
	if script == "" {
		t.Fatal("docs/applications.md has no commands for make up")
	}
	if out := afterUp(t, script+snippets(t, page, "sh test")[0]); !strings.Contains(out, `"memoryId"`) {
		t.Errorf("the first example prints %s", out)
	}
}

// afterUp runs a script in a directory in which make up wrote up.env, and returns its output.
func afterUp(t *testing.T, script string, variables ...[2]string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".mnemo"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"MNEMO_URL", "KUBECTL", "KUBECONFIG"} {
		variables = append(variables, [2]string{name, platform.env[name]})
	}
	if err := devenv.WriteEnv(filepath.Join(dir, ".mnemo", "up.env"), variables); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH")}
	return output(t, cmd)
}
