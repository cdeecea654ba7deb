package charts_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// variant is one value of the chart with an unusual content.
type variant struct {
	path, kind string
	values     map[string]any
}

// TestEveryValueIsAcceptedOrNamed renders each value of the schema absent, null, empty, of a wrong type and extreme. The
// API server must accept the objects, or the error must name the value and its form.
func TestEveryValueIsAcceptedOrNamed(t *testing.T) {
	t.Parallel()
	installCRDs(t)
	cluster := newStrictCluster(t)
	variants := variantsOf(t, cluster.namespace)
	values := make([]map[string]any, len(variants))
	for i, v := range variants {
		values[i] = v.values
	}
	accepted := 0
	for i, r := range renderAll(t, cluster.namespace, values) {
		v := variants[i]
		if r.Error == "" {
			accepted++
			cluster.check(v, r.Manifests)
		} else if v.kind == "absent" && strings.Contains(r.Error, " is required: ") {
			continue // another value depends on the default
		} else if v.kind == "base" || !namesValue(r.Error, v.path) {
			t.Errorf("%s %s: error %q, want one that names the value and its form", v.path, v.kind, r.Error)
		}
	}
	cluster.wait()
	t.Logf("%d renderings, of which %d succeed; %d different objects and pods", len(variants), accepted, len(cluster.seen))
}

// form matches the part of an error that says what is expected.
var form = regexp.MustCompile(`(?i)missing propert|got \w+, want|must be|does not match pattern|maximum|minimum|maxLength|minLength|is required|` +
	`additional propert|must not|want unique|items|requires`)

// internals matches errors of templates that do not explain themselves.
var internals = regexp.MustCompile(`error calling|nil pointer|can't evaluate|error converting|wrong type|executing "`)

// namesValue reports whether an error names the value at path, and the expected form.
func namesValue(message, path string) bool {
	keys := strings.Split(path, ".")
	parent := "'/" + strings.Join(keys[:len(keys)-1], "/") + "'"
	if len(keys) == 1 {
		parent = "''"
	}
	group := strings.Join(keys[:len(keys)-1], ".")
	named := group != "" && strings.Contains(message, group+" is required") || strings.Contains(message, "'/"+strings.Join(keys, "/")) || strings.Contains(message, path) ||
		strings.Contains(message, parent+": missing propert") && strings.Contains(message, "'"+keys[len(keys)-1]+"'")
	return named && form.MatchString(message) && !internals.MatchString(message)
}

// variantsOf returns the variants of each value, after each base.
func variantsOf(t *testing.T, namespace string) []variant {
	t.Helper()
	bases := map[string]map[string]any{}
	for _, name := range []string{"everything", "managed", "demo"} {
		bases[name] = strictValues(readValues(t, "testdata/values/"+name+".yaml"), namespace)
	}
	// A mount requires its volume.
	bases["everything"] = without(without(bases["everything"], "api", "extraVolumeMounts"), "operator", "extraVolumeMounts")
	// Large objects that few values affect.
	full := with(bases["everything"], false, "crds", "install")
	bases["everything"] = without(without(full, "metrics", "rules"), "metrics", "dashboards")
	schema := valueSchemas(t)
	all := []variant{}
	for name, base := range bases {
		all = append(all, variant{"(" + name + ")", "base", base})
	}
	for _, path := range slices.Sorted(maps.Keys(schema)) {
		base := bases["everything"]
		if strings.HasPrefix(path, "postgres.cnpg") || strings.HasPrefix(path, "milvus.operator") {
			base = bases["managed"]
		} else if strings.HasPrefix(path, "demo") {
			base = bases["demo"]
		}
		if strings.HasPrefix(path, "metrics.rules") || strings.HasPrefix(path, "metrics.dashboards") {
			base = full
		}
		keys := strings.Split(path, ".")
		all = append(all, variant{path, "absent", without(base, keys...)}, variant{path, "null", with(base, nil, keys...)})
		for kind, contents := range contentsOf(schema[path]) {
			for _, content := range contents {
				all = append(all, variant{path, fmt.Sprintf("%s %.40q", kind, fmt.Sprint(content)), with(base, content, keys...)})
			}
		}
	}
	return all
}

// contentsOf returns the contents to try for a schema, by kind.
func contentsOf(schema map[string]any) map[string][]any {
	long, hostile := strings.Repeat("x", 300), "a: \"b\"}\n- 'c' {{ d }} #"
	switch schema["type"] {
	case "boolean":
		return map[string][]any{"empty": {""}, "wrong": {"true", 1}}
	case "integer", "number":
		return map[string][]any{"empty": {""}, "wrong": {"1", true}, "extreme": {0, -1, 1e15}}
	case "array":
		return map[string][]any{"empty": {[]any{}}, "wrong": {"x", map[string]any{"x": "y"}, []any{1}}, "extreme": {[]any{long}, []any{hostile}, []any{""}}}
	case "object":
		contents := map[string][]any{"empty": {map[string]any{}}, "wrong": {"x", []any{"x"}}}
		if schema["additionalProperties"] == false { // other keys are those of Kubernetes
			contents["extreme"] = []any{map[string]any{long: "x"}, map[string]any{hostile: "x"}}
		}
		return contents
	}
	return map[string][]any{"empty": {""}, "wrong": {1, []any{}}, "extreme": {long, hostile}}
}

// valueSchemas returns the schema of each value, by path.
func valueSchemas(t *testing.T) map[string]map[string]any {
	t.Helper()
	raw, err := os.ReadFile("mnemo/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var root map[string]any
	if err := json.Unmarshal(raw, &root); err != nil {
		t.Fatal(err)
	}
	definitions, _ := root["definitions"].(map[string]any)
	all := map[string]map[string]any{}
	var walk func(prefix string, schema map[string]any)
	walk = func(prefix string, schema map[string]any) {
		properties, _ := schema["properties"].(map[string]any)
		for key, value := range properties {
			child, _ := value.(map[string]any)
			if ref, isRef := child["$ref"].(string); isRef {
				child, _ = definitions[strings.TrimPrefix(ref, "#/definitions/")].(map[string]any)
			}
			all[prefix+key] = child
			walk(prefix+key+".", child)
		}
	}
	walk("", root)
	return all
}

// without returns a copy of values that lacks the one at a path of keys.
func without(values map[string]any, path ...string) map[string]any {
	nested, isMap := values[path[0]].(map[string]any)
	if len(path) > 1 {
		if !isMap {
			return values
		}
		return with(values, without(nested, path[1:]...), path[0])
	}
	clone := maps.Clone(values)
	delete(clone, path[0])
	return clone
}

// strictValues makes pods that OpenShift and a quota on limits accept.
func strictValues(values map[string]any, namespace string) map[string]any {
	limits := map[string]any{"requests": map[string]any{"cpu": "10m"}, "limits": map[string]any{"cpu": "1", "memory": "1Gi"}}
	for _, component := range []string{"api", "operator", "migrate", "backup", "erasureLedger", "hooks"} {
		values = with(values, limits, component, "resources")
	}
	values = with(values, map[string]any{"postgres": limits, "milvus": limits}, "demoPods", "resources")
	values = with(values, map[string]any{"runAsUser": nil, "runAsGroup": nil, "fsGroup": nil}, "podSecurity")
	return with(values, []any{namespace}, "operator", "watchNamespaces")
}
