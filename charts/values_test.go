package charts_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestNullValuesAreRejectedByName: Helm removes a value that is null, so a template would render an empty text. For
// postgres.sslMode, that disables the verification of certificates. A value that an older chart lacks has its default.
func TestNullValuesAreRejectedByName(t *testing.T) {
	t.Parallel()
	paths := slices.Sorted(slices.Values(valuePaths("", readValues(t, "mnemo/values.yaml"))))
	if len(paths) < 200 {
		t.Fatalf("%d values, want all of values.yaml", len(paths))
	}
	base := readValues(t, "testdata/values/external.yaml")
	values := []map[string]any{base}
	for _, path := range paths {
		values = append(values, with(base, nil, strings.Split(path, ".")...))
	}
	results := renderAll(t, "default", values)
	for i, path := range paths {
		// Null omits an ID of podSecurity, and Helm itself sets global.
		if strings.HasPrefix(path, "podSecurity.") || path == "global" {
			continue
		}
		name := path[strings.LastIndex(path, ".")+1:]
		r := results[i+1]
		if r.Manifests != results[0].Manifests && !strings.Contains(r.Error, fmt.Sprintf("'%s'", name)) {
			t.Errorf("%s is null: error %q, want one that names it", path, r.Error)
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
