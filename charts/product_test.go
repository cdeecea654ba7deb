package charts_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/apiserver/dashboard"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// variables matches the environment variables in `mnemo <command> --help`.
var variables = regexp.MustCompile(`\(?\$([A-Z][A-Z_0-9]+)`)

// libraryVariables are read by the PostgreSQL driver, Go and OpenTelemetry.
var libraryVariables = map[string]bool{
	"PGUSER": true, "PGPASSWORD": true, "PGAPPNAME": true, "HTTPS_PROXY": true, "SSL_CERT_DIR": true, "OTEL_EXPORTER_OTLP_HEADERS": true,
}

// unsetVariables are never set by the chart: listen addresses, the timeout of an
// init container that Kubernetes restarts, the embedder settings that the
// operator does not use, and a direct connection where no pooler is used.
var unsetVariables = []string{
	"serve MNEMO_LISTEN", "serve MNEMO_METRICS_LISTEN", "operator MNEMO_METRICS_LISTEN", "operator MNEMO_HEALTH_LISTEN", "wait MNEMO_WAIT_TIMEOUT",
	"operator MNEMO_MODEL_DIR", "operator MNEMO_MODEL_THREADS", "operator MNEMO_ONNXRUNTIME", "serve MNEMO_ONNXRUNTIME",
	"operator MNEMO_EMBEDDINGS_URL", "operator MNEMO_EMBEDDINGS_KEY", "operator MNEMO_EMBEDDINGS_TIMEOUT",
	"smoke-test MNEMO_LOG_LEVEL", "smoke-test MNEMO_LOG_FORMAT", "erasures record DATABASE_DIRECT_URL",
}

// TestCommandsAndVariablesExist checks that the binary has every command and
// environment variable of the chart, and that the chart can set every variable.
func TestCommandsAndVariablesExist(t *testing.T) {
	t.Parallel()
	mnemo := testkit.Program(t)
	known, set := map[string]map[string]bool{}, map[string]bool{}
	variablesOf := func(command string) map[string]bool {
		if known[command] == nil {
			out, err := exec.CommandContext(t.Context(), mnemo, append(strings.Fields(command), "--help")...).CombinedOutput()
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
	for name, values := range cases(t) {
		for pod, template := range podSpecs(parse(t, render(t, values...))) {
			for _, list := range []string{"initContainers", "containers"} {
				containers, _ := template.at("spec", list).([]any)
				for _, c := range containers {
					container, _ := c.(map[string]any)
					if image, _ := container["image"].(string); !strings.Contains(image, "/mnemo-dev/mnemo") {
						continue // a third-party program
					}
					var words []string // also of a subcommand, as in "erasures record"
					args, _ := container["args"].([]any)
					for _, arg := range args {
						if strings.HasPrefix(fmt.Sprint(arg), "-") {
							break
						}
						words = append(words, fmt.Sprint(arg))
					}
					command := strings.Join(words, " ")
					has := variablesOf(command)
					env, _ := container["env"].([]any)
					for _, e := range env {
						entry, _ := e.(map[string]any)
						variable, _ := entry["name"].(string)
						set[command+" "+variable] = true
						if !has[variable] && !libraryVariables[variable] {
							t.Errorf("%s: %s sets %s, which `mnemo %s` does not read", name, pod, variable, command)
						}
					}
				}
			}
		}
	}
	if len(known) != 7 {
		t.Errorf("commands %v, want serve, operator, migrate, wait, erasures record, smoke-test and pre-uninstall", slices.Sorted(maps.Keys(known)))
	}
	var unset []string
	for command, variables := range known {
		for variable := range variables {
			if !set[command+" "+variable] {
				unset = append(unset, command+" "+variable)
			}
		}
	}
	slices.Sort(unset)
	slices.Sort(unsetVariables)
	if diff := cmp.Diff(unsetVariables, unset); diff != "" {
		t.Errorf("variables that the chart never sets (add a value for those an administrator needs): -want +got\n%s", diff)
	}
}

// TestServerReadsOIDCProviders checks that the server accepts the file rendered from
// oidc.providers, and that each provider has its own secret.
func TestServerReadsOIDCProviders(t *testing.T) {
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
