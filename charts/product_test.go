package charts_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/apiserver/dashboard"
)

// variables are what `mnemo <command> --help` says it reads.
var variables = regexp.MustCompile(`\(?\$([A-Z][A-Z_0-9]+)`)

// standard are read by libraries: the PostgreSQL driver, Go and OpenTelemetry.
var standard = map[string]bool{
	"PGUSER": true, "PGPASSWORD": true, "HTTPS_PROXY": true, "SSL_CERT_DIR": true, "OTEL_EXPORTER_OTLP_HEADERS": true,
}

// unsaid are variables the chart never gives: what its containers listen on, a
// wait that begins again when it ends, and what the operator, which only needs
// the embedder's name, does not use.
var unsaid = []string{
	"serve MNEMO_LISTEN", "serve MNEMO_METRICS_LISTEN", "operator MNEMO_METRICS_LISTEN", "operator MNEMO_HEALTH_LISTEN", "wait MNEMO_WAIT_TIMEOUT",
	"operator MNEMO_MODEL_DIR", "operator MNEMO_EMBEDDINGS_URL", "operator MNEMO_EMBEDDINGS_KEY", "operator MNEMO_EMBEDDINGS_TIMEOUT",
	"smoke-test MNEMO_LOG_LEVEL", "smoke-test MNEMO_LOG_FORMAT",
}

// TestProductKnowsIt: every command and variable the chart gives Mnemo's own
// containers is one the binary has, and it can give all that a host would set.
func TestProductKnowsIt(t *testing.T) {
	t.Parallel()
	mnemo := filepath.Join(t.TempDir(), "mnemo")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", mnemo, "../cmd/mnemo").CombinedOutput(); err != nil {
		t.Fatalf("build mnemo: %v\n%s", err, out)
	}
	known, given := map[string]map[string]bool{}, map[string]bool{}
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
						given[command+" "+variable] = true
						if !has[variable] && !standard[variable] {
							t.Errorf("%s: %s gives %s, which `mnemo %s` does not read", name, pod, variable, command)
						}
					}
				}
			}
		}
	}
	if len(known) != 6 {
		t.Errorf("commands %v, want serve, operator, migrate, wait, smoke-test and pre-uninstall", known)
	}
	var never []string
	for command, variables := range known {
		for variable := range variables {
			if !given[command+" "+variable] {
				never = append(never, command+" "+variable)
			}
		}
	}
	slices.Sort(never)
	slices.Sort(unsaid)
	if diff := cmp.Diff(unsaid, never); diff != "" {
		t.Errorf("variables that no values lead to (give what a host would set a value): -want +got\n%s", diff)
	}
}

// TestProductReadsProviders: the file the chart makes of oidc.providers is one
// that the server starts with, and each has its own secret.
func TestProductReadsProviders(t *testing.T) {
	t.Parallel()
	objects := parse(t, render(t, "-f", "testdata/values/everything.yaml", "-s", "templates/oidc.yaml", "-s", "templates/api-deployment.yaml"))
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var file string
	for _, o := range objects {
		if o.kind() == "ConfigMap" {
			content, _ := o.at("data", "providers.json").(string)
			file = write("providers.json", strings.ReplaceAll(content, "/etc/mnemo/oidc", dir))
			continue
		}
		for _, volume := range list(o.at("spec", "template", "spec", "volumes")) {
			for _, source := range list(object(volume).at("projected", "sources")) {
				for _, item := range list(object(source).at("secret", "items")) {
					write(fmt.Sprint(item["path"]), fmt.Sprint(object(source).at("secret", "name"), "/", item["key"]))
				}
			}
		}
	}
	providers, err := dashboard.ReadProviders(file)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range providers {
		got = append(got, strings.Join([]string{p.Name, p.Issuer, p.ClientID, p.ClientSecret}, " "))
	}
	want := []string{
		"Example https://id.example.test:8443/realms/a mnemo example-client/client-secret",
		"Other https://id.other.test mnemo other-client/secret",
		"Public https://public.example.test mnemo ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("providers: -want +got\n%s", diff)
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
	hash := regexp.MustCompile(`sha256: +"([0-9a-f]{64})"`).FindStringSubmatch(read("../hack/devenv/model.go"))
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
