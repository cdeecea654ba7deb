package cluster_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// readme runs the commands of "Deploy" in README.md as written, and those in the notes that
// they print.
func (d *demo) readme(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(cluster.root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, deploy, _ := strings.Cut(string(text), "\n## Deploy\n")
	_, deploy, _ = strings.Cut(deploy, "```sh\n")
	commands, _, found := strings.Cut(deploy, "```")
	if !found || !strings.Contains(commands, "helm install") {
		t.Fatalf("README.md has no commands under Deploy: %q", commands)
	}
	notes := d.shell(t, commands)
	d.passwords = d.generatedPasswords(t)
	token := d.shell(t, notesCommands(t, notes))
	if want := kubectl(t, "", "get", "secret", "acme-alice-access", "--namespace", d.namespace, "--output", "go-template={{.data.token | base64decode}}"); !strings.HasSuffix(token, want) {
		t.Error("the commands of the notes do not print the token of the user")
	}
	d.connect(t)
	d.storeAndSearch(t)
}

// notesCommands returns the commands of the chart's notes that create the first Tenant:
// the indented lines.
func notesCommands(t *testing.T, output string) string {
	t.Helper()
	_, notes, found := strings.Cut(output, "Create the first Tenant")
	if !found {
		t.Fatalf("the notes do not say how to create a Tenant: %s", output)
	}
	var commands strings.Builder
	for line := range strings.Lines(notes) {
		if command, indented := strings.CutPrefix(line, "  "); indented {
			commands.WriteString(command)
		}
	}
	return commands.String()
}

// shell runs commands in the checkout with bash, which stops at the first error. The
// programs are those of the tests. Helm installs the locally built images, because the node
// cannot pull others, and takes over the custom resource of the previous release.
func (d *demo) shell(t *testing.T, commands string) string {
	t.Helper()
	bin := t.TempDir()
	for name, script := range map[string]string{
		"kubectl": fmt.Sprintf("exec %q \"$@\"", cluster.env["KUBECTL"]),
		"helm": fmt.Sprintf("if [ \"$1\" = install ]; then set -- \"$@\" --take-ownership --set %q; fi\nexec %q helm \"$@\"",
			d.images, filepath.Join(cluster.root, "hack", "tool.sh")),
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/bash\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := cluster.in(exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", commands))
	cmd.Env = append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", commands, err, out)
	}
	return strings.TrimSpace(string(out))
}
