package charts_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestUpgradeReusesValuesOfOlderChart: with --reuse-values, Helm uses the defaults of the older chart, which lack newer
// values. A chart cannot require those, and must treat them as if they had their defaults.
func TestUpgradeReusesValuesOfOlderChart(t *testing.T) {
	t.Parallel()
	old, defaults := readValues(t, "testdata/upgrade/values.yaml"), readValues(t, "mnemo/values.yaml")
	var values []map[string]any
	var names []string
	for _, name := range []string{"external", "everything", "managed", "restore", "demo"} {
		v := readValues(t, "testdata/values/"+name+".yaml")
		names = append(names, name)
		values = append(values, v, withoutNew(v, defaults, old))
	}
	results := renderAll(t, "default", values)
	for i, name := range names {
		want, got := results[2*i], results[2*i+1]
		if got.Error != "" || want.Error != "" {
			t.Errorf("%s: %s%s", name, want.Error, got.Error)
			continue
		}
		mask := func(r rendering) string {
			return demoChecksum.ReplaceAllString(generatedPasswords.ReplaceAllString(r.Manifests, ""), "")
		}
		if diff := cmp.Diff(mask(want), mask(got)); diff != "" {
			t.Errorf("%s: objects differ from those with the new defaults: -want +got\n%s", name, diff)
		}
	}
}

// withoutNew returns a copy of values in which each value that the older defaults lack is null, which removes it.
func withoutNew(values, defaults, old map[string]any) map[string]any {
	for key, value := range defaults {
		older, found := old[key]
		if !found {
			values = with(values, nil, key)
			continue
		}
		nested, isMap := value.(map[string]any)
		olderNested, _ := older.(map[string]any)
		if set, isSet := values[key].(map[string]any); isMap && (isSet || values[key] == nil) {
			if changed := withoutNew(set, nested, olderNested); len(changed) > 0 {
				values = with(values, changed, key)
			}
		}
	}
	return values
}
