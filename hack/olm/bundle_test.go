package olm_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/olm"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// serviceVersion is what the tests read of a ClusterServiceVersion.
type serviceVersion struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		MinKubeVersion string
		RelatedImages  []struct{ Name, Image string }
		Install        struct {
			Spec struct {
				Deployments []struct {
					Name  string
					Label map[string]string
					Spec  appsv1.DeploymentSpec
				}
				Permissions, ClusterPermissions []struct {
					ServiceAccountName string
					Rules              []rbacv1.PolicyRule
				}
			}
		}
		CustomResourceDefinitions struct {
			Owned []struct {
				SpecDescriptors, StatusDescriptors []struct{ Path, DisplayName, Description string }
			}
		}
	}
}

// TestBundle builds the OLM bundle of a release, and checks it as OLM would: with its validator, and as objects of a
// kube-apiserver.
func TestBundle(t *testing.T) {
	t.Parallel()
	dir, csv := buildBundle(t)
	t.Run("Files", func(t *testing.T) {
		t.Parallel()
		want := []string{
			"mnemo-api-metrics.service.yaml", "mnemo-api.poddisruptionbudget.yaml", "mnemo-operator-metrics.service.yaml",
			"mnemo.clusterserviceversion.yaml", "mnemo.dev_tenants.yaml", "mnemo.service.yaml",
		}
		if diff := cmp.Diff(want, manifests(t, dir)); diff != "" {
			t.Errorf("manifests (-want +got):\n%s", diff)
		}
	})
	t.Run("Validator", func(t *testing.T) {
		t.Parallel()
		if problems := validateBundle(t, dir); problems != "" {
			t.Errorf("operator-verify:\n%s", problems)
		}
	})
	t.Run("ValidatorRejects", func(t *testing.T) {
		t.Parallel()
		broken, _ := buildBundle(t)
		if err := os.Remove(filepath.Join(broken, "manifests/mnemo.dev_tenants.yaml")); err != nil {
			t.Fatal(err)
		}
		if problems := validateBundle(t, broken); !strings.Contains(problems, "not found in bundle") {
			t.Errorf("operator-verify accepts a bundle without its CRD: %q", problems)
		}
	})
	t.Run("Images", func(t *testing.T) {
		t.Parallel()
		checkRelatedImages(t, csv)
	})
	t.Run("Secrets", func(t *testing.T) {
		t.Parallel()
		checkSecrets(t, csv)
	})
	t.Run("Permissions", func(t *testing.T) {
		t.Parallel()
		checkPermissions(t, csv)
	})
	t.Run("Descriptors", func(t *testing.T) {
		t.Parallel()
		owned := csv.Spec.CustomResourceDefinitions.Owned[0]
		var got []string
		for _, d := range slices.Concat(owned.SpecDescriptors, owned.StatusDescriptors) {
			if d.Description == "" {
				t.Errorf("descriptor %s has no description", d.Path)
			}
			got = append(got, d.DisplayName)
		}
		for _, want := range []string{"Deletion Policy", "OIDC", "Users", "Conditions", "Usage"} {
			if !slices.Contains(got, want) {
				t.Errorf("descriptors %q, want %s", got, want)
			}
		}
	})
	t.Run("Server", func(t *testing.T) {
		t.Parallel()
		applyBundle(t, dir, csv)
	})
}

// buildBundle writes the bundle of a release to a directory.
func buildBundle(t *testing.T) (string, serviceVersion) {
	t.Helper()
	source := olm.Source{
		Root: "../..", Chart: "../../charts/mnemo", Version: "1.2.3", Arches: []string{"amd64", "arm64"},
		Image: "registry.example.test/mnemo/mnemo", Reference: "sha256:" + strings.Repeat("0a", 32),
	}
	files, err := source.Bundle(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for path, content := range files {
		file := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var csv serviceVersion
	if err := yaml.Unmarshal(files["manifests/mnemo.clusterserviceversion.yaml"], &csv); err != nil {
		t.Fatal(err)
	}
	return dir, csv
}

// falseWarnings are warnings of OLM's validator for every bundle: that one of its parts is deprecated, and that
// events.k8s.io was removed from Kubernetes, of which only v1beta1 was.
var falseWarnings = []string{"validator is deprecated", "Migrate the API(s) for events: "}

// validateBundle returns the errors and warnings of OLM's validator.
func validateBundle(t *testing.T, dir string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "../../hack/tool.sh", "operator-verify", "manifests", "--operatorhub_validate", "--object_validate", dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("operator-verify: %v\n%s", err, out)
	}
	if !strings.Contains(string(out), falseWarnings[0]) {
		t.Errorf("operator-verify ran without the validator of OperatorHub:\n%s", out)
	}
	var problems strings.Builder
	for line := range strings.Lines(string(out)) {
		expected := slices.ContainsFunc(falseWarnings, func(w string) bool { return strings.Contains(line, w) })
		if strings.HasPrefix(line, "time=") && !expected {
			problems.WriteString(line)
		}
	}
	return problems.String()
}

// checkRelatedImages checks that mirrors of the bundle, which copy relatedImages, copy every image, by its digest.
func checkRelatedImages(t *testing.T, csv serviceVersion) {
	t.Helper()
	var related, used []string
	for _, i := range csv.Spec.RelatedImages {
		related = append(related, i.Image)
	}
	for _, d := range csv.Spec.Install.Spec.Deployments {
		for _, c := range slices.Concat(d.Spec.Template.Spec.InitContainers, d.Spec.Template.Spec.Containers) {
			used = append(used, c.Image)
		}
	}
	slices.Sort(used)
	if diff := cmp.Diff(related, slices.Compact(used)); diff != "" {
		t.Errorf("images of the Deployments (-related +used):\n%s", diff)
	}
	if !strings.HasPrefix(related[0], "registry.example.test/mnemo/mnemo@sha256:") {
		t.Errorf("image %s, want a digest", related[0])
	}
}

// checkSecrets checks that every container reads its settings from a Secret, and that only the migration reads the owner's.
func checkSecrets(t *testing.T, csv serviceVersion) {
	t.Helper()
	var got []string
	for _, d := range csv.Spec.Install.Spec.Deployments {
		for _, c := range slices.Concat(d.Spec.Template.Spec.InitContainers, d.Spec.Template.Spec.Containers) {
			got = append(got, fmt.Sprintf("%s %s %v %s", d.Name, c.Name, c.Args, c.EnvFrom[0].SecretRef.Name))
			for _, e := range c.Env {
				if strings.Contains(e.Value, "placeholder") || e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
					t.Errorf("%s: %s is set by the bundle", c.Name, e.Name)
				}
			}
		}
	}
	want := []string{
		"mnemo-api wait-for-schema [wait] mnemo-config", "mnemo-api api [serve] mnemo-config",
		"mnemo-operator migrate [migrate] mnemo-owner", "mnemo-operator wait-for-schema [wait] mnemo-config", "mnemo-operator operator [operator] mnemo-config",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("containers and their Secrets (-want +got):\n%s", diff)
	}
}

// checkPermissions checks that the operator has exactly the permissions that its code requires, and that OLM creates the
// account of the API server, without permissions.
func checkPermissions(t *testing.T, csv serviceVersion) {
	t.Helper()
	roles := strings.Split(read(t, "../../config/rbac/role.yaml"), "---\n")
	var cluster, own rbacv1.Role
	for i, role := range []*rbacv1.Role{&cluster, &own} {
		if err := yaml.Unmarshal([]byte(roles[i+1]), role); err != nil {
			t.Fatal(err)
		}
	}
	cluster.Rules, own.Rules = withoutCells(cluster.Rules, "cells", "cells/status"), withoutCells(own.Rules, "secrets")
	permissions := csv.Spec.Install.Spec
	if diff := cmp.Diff(cluster.Rules, permissions.ClusterPermissions[0].Rules); diff != "" {
		t.Errorf("cluster permissions (-want +got):\n%s", diff)
	}
	got := map[string][]rbacv1.PolicyRule{}
	for _, p := range permissions.Permissions {
		got[p.ServiceAccountName] = p.Rules
	}
	if diff := cmp.Diff(map[string][]rbacv1.PolicyRule{"mnemo-operator": own.Rules, "mnemo-api": {}}, got); diff != "" {
		t.Errorf("permissions (-want +got):\n%s", diff)
	}
}

// withoutCells removes resources to which only an operator with cells has rights: a bundle has the default of
// cells.enabled, false.
func withoutCells(rules []rbacv1.PolicyRule, resources ...string) (out []rbacv1.PolicyRule) {
	for _, rule := range rules {
		rule.Resources = slices.DeleteFunc(rule.Resources, func(name string) bool { return slices.Contains(resources, name) })
		if len(rule.Resources) > 0 {
			out = append(out, rule)
		}
	}
	return out
}

// applyBundle creates the objects of the bundle on a kube-apiserver, and those that OLM would create from it: the
// Deployments and the example. Unknown fields are errors.
func applyBundle(t *testing.T, dir string, csv serviceVersion) {
	t.Helper()
	definitions, err := devenv.OLMDefinitions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{definitions["clusterserviceversions"], filepath.Join(dir, "manifests/mnemo.dev_tenants.yaml")} {
		kubectl(t, "", "apply", "--server-side", "--force-conflicts", "-f", file)
		kubectl(t, "", "wait", "--for=jsonpath={.status.conditions}", "--timeout=60s", "-f", file) // a condition that does not exist yet is an error
		kubectl(t, "", "wait", "--for=condition=Established", "--timeout=60s", "-f", file)
	}
	for _, manifest := range manifests(t, dir) {
		if manifest != "mnemo.dev_tenants.yaml" {
			dryRun(t, read(t, filepath.Join(dir, "manifests", manifest)))
		}
	}
	for _, d := range csv.Spec.Install.Spec.Deployments {
		deployment, err := json.Marshal(appsv1.Deployment{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
			ObjectMeta: metav1.ObjectMeta{Name: d.Name, Labels: d.Label},
			Spec:       d.Spec,
		})
		if err != nil {
			t.Fatal(err)
		}
		dryRun(t, string(deployment))
	}
	var examples []json.RawMessage
	if err := json.Unmarshal([]byte(csv.Annotations["alm-examples"]), &examples); err != nil {
		t.Fatal(err)
	}
	for _, example := range examples {
		dryRun(t, string(example))
	}
}

// TestAdmissionPolicies runs the command of docs/install.md for the policies that a bundle cannot contain.
func TestAdmissionPolicies(t *testing.T) {
	t.Parallel()
	command := regexp.MustCompile(`helm (template mnemo charts/mnemo .* --show-only .*) \| kubectl apply`).FindStringSubmatch(read(t, "../../docs/install.md"))
	if command == nil {
		t.Fatal("docs/install.md does not contain the command")
	}
	args := strings.Fields(strings.ReplaceAll(command[1], "charts/mnemo", "../../charts/mnemo"))
	rendered, err := devenv.Tool(t.Context(), "../..", "helm", append(args, "--kube-version", "1.30.0")...)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(rendered, "kind: ValidatingAdmissionPolicyBinding"); got != 2 {
		t.Errorf("%d bindings of policies, want 2:\n%s", got, rendered)
	}
	dryRun(t, rendered)
}

// dryRun validates an object on the server. A warning, such as that of a Pod Security Standard, is an error.
func dryRun(t *testing.T, manifest string) {
	t.Helper()
	if out := kubectl(t, manifest, "create", "--dry-run=server", "--validate=strict", "-f", "-"); strings.Contains(out, "Warning:") {
		t.Errorf("the server warns: %s", out)
	}
}

func kubectl(t *testing.T, input string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), testkit.Kubectl(t), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+testkit.KubeConfigFile(t))
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// manifests returns the names of the bundle's manifests.
func manifests(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "manifests"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
