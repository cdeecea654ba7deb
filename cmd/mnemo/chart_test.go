package main

import (
	"cmp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/olm"
)

// TestDefaultsAreThoseOfChart: an OLM bundle contains only some of the settings that the chart sets. The program's default of each
// other one must be the chart's, or an installation with OLM behaves differently.
func TestDefaultsAreThoseOfChart(t *testing.T) {
	t.Parallel()
	const root, chart, values, image = "../..", "../../charts/mnemo", "../../config/olm/values.yaml", "registry.example.test/mnemo"
	rendered, err := devenv.Tool(t.Context(), root, "helm", "template", "mnemo", chart, "--values", values, "--kube-version", "1.37.0")
	if err != nil {
		t.Fatal(err)
	}
	files, err := olm.Source{Root: root, Chart: chart, Version: "1.2.3", Image: image, Reference: "1.2.3"}.Bundle(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var bundle struct {
		Spec struct {
			Install struct {
				Spec struct{ Deployments []appsv1.Deployment }
			}
		}
	}
	if err := yaml.Unmarshal(files["manifests/mnemo.clusterserviceversion.yaml"], &bundle); err != nil {
		t.Fatal(err)
	}
	inBundle := map[string]bool{}
	for _, d := range bundle.Spec.Install.Spec.Deployments {
		eachSetting(d, func(command string, e corev1.EnvVar) { inBundle[command+" "+e.Name] = true })
	}
	defaults := defaultsOfVariables(t)
	compared := 0
	for document := range strings.SplitSeq(rendered, "\n---\n") {
		var d appsv1.Deployment
		if err := yaml.Unmarshal([]byte(document), &d); err != nil || d.Kind != "Deployment" {
			continue
		}
		eachSetting(d, func(command string, e corev1.EnvVar) {
			if e.ValueFrom != nil || strings.Contains(e.Value, "placeholder") || e.Name == "MNEMO_URL" || inBundle[command+" "+e.Name] {
				return // set by the Secrets of the bundle or by the bundle
			}
			compared++
			if got := defaults[command+" "+e.Name]; cmp.Or(got, "false") != e.Value && got != e.Value {
				t.Errorf("default of %s in mnemo %s: %q, the chart sets %q", e.Name, command, got, e.Value)
			}
		})
	}
	if compared < 20 {
		t.Errorf("compared %d settings, want at least 20", compared)
	}
}

// eachSetting calls f with the environment variables of all containers and their command.
func eachSetting(d appsv1.Deployment, f func(command string, e corev1.EnvVar)) {
	for _, containers := range [][]corev1.Container{d.Spec.Template.Spec.InitContainers, d.Spec.Template.Spec.Containers} {
		for _, c := range containers {
			for _, e := range c.Env {
				f(c.Args[0], e)
			}
		}
	}
}

// defaultsOfVariables returns the defaults of all environment variables, by command and name.
func defaultsOfVariables(t *testing.T) map[string]string {
	t.Helper()
	parser, err := kong.New(&cli{}, modelVars(), importVars())
	if err != nil {
		t.Fatal(err)
	}
	defaults := map[string]string{}
	for _, command := range parser.Model.Children {
		for _, flag := range append(parser.Model.Flags, command.Flags...) {
			for _, env := range flag.Envs {
				defaults[command.Name+" "+env] = flag.Default
			}
		}
	}
	return defaults
}
