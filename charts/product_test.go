package charts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// variables are what `mnemo <command> --help` says it reads.
var variables = regexp.MustCompile(`\(?\$([A-Z][A-Z_0-9]+)`)

// standard are read by libraries: the PostgreSQL driver, Go and OpenTelemetry.
var standard = map[string]bool{"PGUSER": true, "PGPASSWORD": true, "HTTPS_PROXY": true}

// TestProductKnowsIt: every command and variable the chart gives Mnemo's own
// containers is one the binary has.
func TestProductKnowsIt(t *testing.T) {
	t.Parallel()
	mnemo := filepath.Join(t.TempDir(), "mnemo")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", mnemo, "../cmd/mnemo").CombinedOutput(); err != nil {
		t.Fatalf("build mnemo: %v\n%s", err, out)
	}
	known := map[string]map[string]bool{}
	ask := func(command string) map[string]bool {
		if known[command] == nil {
			out, err := exec.CommandContext(t.Context(), mnemo, command, "--help").CombinedOutput()
			if err != nil {
				t.Fatalf("mnemo %s --help: %v\n%s", command, err, out)
			}
			known[command] = map[string]bool{}
			for _, m := range variables.FindAllStringSubmatch(string(out), -1) {
				known[command][m[1]] = true
			}
		}
		return known[command]
	}
	for name, file := range cases(t) {
		for pod, template := range podSpecs(parse(t, render(t, "-f", file))) {
			if strings.Contains(pod, "-demo-") {
				continue // other people's programs
			}
			for _, list := range []string{"initContainers", "containers"} {
				containers, _ := template.at("spec", list).([]any)
				for _, c := range containers {
					container, _ := c.(map[string]any)
					args, _ := container["args"].([]any)
					command, _ := args[0].(string)
					has := ask(command)
					env, _ := container["env"].([]any)
					for _, e := range env {
						entry, _ := e.(map[string]any)
						variable, _ := entry["name"].(string)
						if !has[variable] && !standard[variable] {
							t.Errorf("%s: %s gives %s, which `mnemo %s` does not read", name, pod, variable, command)
						}
					}
				}
			}
		}
	}
	if len(known) != 6 {
		t.Errorf("commands %v, want serve, operator, migrate, wait, probe and uninstall", known)
	}
}

// TestDockerfileAgrees: the image is made from the model the tests run on, and
// has it where the chart looks.
func TestDockerfileAgrees(t *testing.T) {
	t.Parallel()
	read := func(path string) string {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	dockerfile := read("../Dockerfile")
	hash := regexp.MustCompile(`sha256: +"([0-9a-f]{64})"`).FindStringSubmatch(read("../hack/parts/model.go"))
	path := regexp.MustCompile(`(?m)^ +path: (/\S+)`).FindStringSubmatch(read("mnemo/values.yaml"))
	if hash == nil || path == nil {
		t.Fatalf("hash %v, path %v: not found where they were", hash, path)
	}
	for _, want := range []string{hash[1], "/model/ " + path[1] + "/\n", "USER 65532:65532"} {
		if !strings.Contains(dockerfile, want) {
			t.Errorf("the Dockerfile does not say %q", want)
		}
	}
}
