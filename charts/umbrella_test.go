package charts_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestParentChart installs the chart as a dependency of another chart, which sets
// its condition and the global values.
func TestParentChart(t *testing.T) {
	t.Parallel()
	installCRDs(t)
	parent := newParentChart(t)
	objects := func(set ...string) []object {
		return parse(t, renderChart(t, parent, append([]string{"-n", "platform"}, set...)...))
	}
	t.Run("enabled", func(t *testing.T) {
		t.Parallel()
		all := objects("--set", "mnemo.enabled=true,global.imageRegistry=mirror.test/a,global.imagePullSecrets={mirror}")
		for pod, template := range podSpecs(all) {
			if diff := cmp.Diff([]string{"mirror"}, pullSecrets(template)); diff != "" {
				t.Errorf("pull secrets of %s: -want +got\n%s", pod, diff)
			}
		}
		for _, image := range images(all) {
			if !strings.HasPrefix(image, "mirror.test/a/mnemo-dev/") {
				t.Errorf("image %s, want it from mirror.test/a", image)
			}
		}
	})
	t.Run("pull secrets as objects", func(t *testing.T) {
		t.Parallel()
		all := objects("--set", "mnemo.enabled=true,global.imagePullSecrets[0].name=mirror,mnemo.image.pullSecrets[0].name=own")
		for pod, template := range podSpecs(all) {
			if diff := cmp.Diff([]string{"own", "mirror"}, pullSecrets(template)); diff != "" {
				t.Errorf("pull secrets of %s: -want +got\n%s", pod, diff)
			}
		}
	})
	t.Run("disabled", func(t *testing.T) {
		t.Parallel()
		if all := objects("--set", "mnemo.enabled=false"); len(all) != 0 {
			t.Errorf("%d objects of a disabled dependency", len(all))
		}
	})
	t.Run("other globals", func(t *testing.T) {
		t.Parallel()
		if all := objects("--set", "mnemo.enabled=true,global.storageClass=fast"); len(all) == 0 {
			t.Error("no objects")
		}
	})
	t.Run("installed", func(t *testing.T) {
		t.Parallel()
		installing.RLock()
		t.Cleanup(installing.RUnlock)
		r := newRelease(t, "")
		t.Cleanup(func() { uninstall(t, r.namespace) })
		r.helm("install", "mnemo", parent, "--set", "mnemo.enabled=true,mnemo.crds.install=false,mnemo.operator.watchNamespaces={"+r.namespace+"}")
		r.expectReplicas("2 1")
	})
}

// newParentChart writes a chart that depends on this one, and fetches the
// dependency.
func newParentChart(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(chart)
	if err != nil {
		t.Fatal(err)
	}
	version := parse(t, read(t, "mnemo/Chart.yaml"))[0]["version"]
	dir := filepath.Join(t.TempDir(), "platform")
	for name, content := range map[string]string{
		"Chart.yaml": fmt.Sprintf(`{apiVersion: v2, name: platform, version: 1.0.0, dependencies: [
			{name: mnemo, version: %v, repository: "file://%s", condition: mnemo.enabled}]}`, version, path),
		"values.yaml": "mnemo:\n  " + strings.ReplaceAll(read(t, "testdata/values/external.yaml"), "\n", "\n  "),
	} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := helm(t, "dependency", "update", dir); err != nil {
		t.Fatalf("helm dependency update: %v\n%s", err, out)
	}
	return dir
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// pullSecrets returns the names of a pod's pull secrets.
func pullSecrets(pod object) []string {
	var names []string
	for _, secret := range list(pod.at("spec", "imagePullSecrets")) {
		names = append(names, fmt.Sprint(secret["name"]))
	}
	return names
}

// images returns every image that the objects name: of containers, of image
// volumes and of the stores' operators.
func images(objects []object) []string {
	found := map[string]bool{}
	var walk func(key string, v any)
	walk = func(key string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, child := range v {
				walk(k, child)
			}
		case []any:
			for _, child := range v {
				walk(key, child)
			}
		case string:
			if key == "image" || key == "imageName" || key == "reference" {
				found[v] = true
			}
		}
	}
	for _, o := range objects {
		if o.kind() != "CustomResourceDefinition" { // its descriptions are no images
			walk("", map[string]any(o))
		}
	}
	all := make([]string, 0, len(found))
	for image := range found {
		all = append(all, image)
	}
	slices.Sort(all)
	return all
}
