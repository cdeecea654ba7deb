package charts_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// TestGitOpsExamples validates the manifests in docs/gitops.md on a real
// kube-apiserver with the custom resources of Argo CD and Flux, and renders the
// chart with their values.
func TestGitOpsExamples(t *testing.T) {
	t.Parallel()
	installCRDs(t)
	files, err := devenv.GitOpsDefinitions(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	applyCRDs(t, files)
	ns := newNamespace(t)
	var kinds []string
	rendered := 0
	for _, o := range examples(t, "../docs/gitops.md") {
		metadata, _ := o["metadata"].(map[string]any)
		metadata["namespace"] = ns
		kinds = append(kinds, o.kind())
		kubectl(t, manifest(t, []object{o}), "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-")
		for _, values := range []any{o.at("spec", "values"), o.at("spec", "source", "helm", "valuesObject")} {
			if values == nil {
				continue
			}
			rendered++
			if all := parse(t, render(t, "-f", writeYAML(t, filepath.Join(t.TempDir(), "values.yaml"), values))); len(podSpecs(all)) < 5 {
				t.Errorf("%s: %d pods, want those of the whole chart", o.kind(), len(podSpecs(all)))
			}
		}
	}
	want := []string{"Application", "Application", "Tenant", "ConfigMap", "GitRepository", "HelmRelease", "Kustomization", "Kustomization"}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("examples: -want +got\n%s", diff)
	}
	if rendered != 2 {
		t.Errorf("%d examples with values of the chart, want 2", rendered)
	}
}

// TestArgoCDNeverPrunesData: neither a changed value nor the deletion of the
// Application removes what `helm uninstall` keeps. Nothing has a sync wave
// (docs/gitops.md says why).
func TestArgoCDNeverPrunesData(t *testing.T) {
	t.Parallel()
	var kept []string
	for _, o := range parse(t, render(t, "-f", "testdata/values/managed.yaml")) {
		annotations, _ := o.at("metadata", "annotations").(map[string]any)
		keep := annotations["helm.sh/resource-policy"] == "keep"
		if options := annotations["argocd.argoproj.io/sync-options"]; keep != (options == "Prune=false,Delete=false") {
			t.Errorf("%s/%s: kept by Helm: %t, sync options of Argo CD: %v", o.kind(), o.name(), keep, options)
		}
		if keep {
			kept = append(kept, o.kind())
		}
		if wave := annotations["argocd.argoproj.io/sync-wave"]; wave != nil {
			t.Errorf("%s/%s has sync wave %v", o.kind(), o.name(), wave)
		}
	}
	for _, kind := range []string{"CustomResourceDefinition", "Cluster"} {
		if !slices.Contains(kept, kind) {
			t.Errorf("kept kinds %v, want also %s", kept, kind)
		}
	}
}

var yamlBlock = regexp.MustCompile("(?ms)^( *)```yaml\n(.*?)^ *```$")

// examples returns the Kubernetes objects in a document's YAML blocks.
func examples(t *testing.T, path string) []object {
	t.Helper()
	var all []object
	for _, block := range yamlBlock.FindAllStringSubmatch(read(t, path), -1) {
		text := strings.ReplaceAll("\n"+block[2], "\n"+block[1], "\n")
		for _, o := range parse(t, text) {
			if o.kind() != "" {
				all = append(all, o)
			}
		}
	}
	return all
}

// writeYAML writes a file and returns its path.
func writeYAML(t *testing.T, path string, v any) string {
	t.Helper()
	raw, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
