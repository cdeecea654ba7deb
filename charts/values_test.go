package charts_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestNullValuesAreRejectedByName: Helm removes a value that is null, so a template would render an empty text. For
// postgres.sslMode, that disables the verification of certificates.
func TestNullValuesAreRejectedByName(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("mnemo/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var defaults map[string]any
	if err := yaml.Unmarshal(raw, &defaults); err != nil {
		t.Fatal(err)
	}
	paths := valuePaths("", defaults)
	if len(paths) < 200 {
		t.Fatalf("%d values, want all of values.yaml", len(paths))
	}
	for _, path := range paths {
		// Null omits an ID of podSecurity, and Helm itself sets global.
		if strings.HasPrefix(path, "podSecurity.") || path == "global" {
			continue
		}
		name := path[strings.LastIndex(path, ".")+1:]
		_, err := helm(t, "template", "mnemo", chart, "--kube-version", "1.37.0", "-f", "testdata/values/external.yaml", "--set-json", path+"=null")
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("'%s'", name)) {
			t.Errorf("%s is null: %v, want an error that names it", path, err)
		}
	}
}

// valuePaths returns the path of each value in values.yaml. The keys of labels, resources and parameters are free.
func valuePaths(prefix string, values map[string]any) []string {
	free := []string{"labels", "resources", "waitResources", "parameters"}
	var paths []string
	for key, value := range values {
		path := prefix + key
		paths = append(paths, path)
		if nested, isMap := value.(map[string]any); isMap && !slices.Contains(free, key) {
			paths = append(paths, valuePaths(path+".", nested)...)
		}
	}
	return paths
}
