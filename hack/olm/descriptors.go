package olm

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// describe returns the entry of a ClusterServiceVersion for a CRD. Consoles show its descriptors, one for each field of
// spec and status.
func describe(definition map[string]any) map[string]any {
	versions, _, _ := unstructured.NestedSlice(definition, "spec", "versions")
	version, _ := versions[0].(map[string]any)
	schema, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
	kind, _, _ := unstructured.NestedString(definition, "spec", "names", "kind")
	crd := unstructured.Unstructured{Object: definition}
	return map[string]any{
		"name":              crd.GetName(),
		"version":           version["name"],
		"kind":              kind,
		"displayName":       kind,
		"description":       oneLine(schema["description"]),
		"resources":         []any{map[string]any{"kind": "Secret", "name": "", "version": "v1"}},
		"specDescriptors":   descriptors(schema, "spec"),
		"statusDescriptors": descriptors(schema, "status"),
	}
}

func descriptors(schema map[string]any, part string) []any {
	fields, _, _ := unstructured.NestedMap(schema, "properties", part, "properties")
	var all []any
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		property, _ := fields[field].(map[string]any)
		d := map[string]any{"path": field, "displayName": displayName(field), "description": oneLine(property["description"])}
		if hints := consoleHints(field, property); hints != nil {
			d["x-descriptors"] = hints
		}
		all = append(all, d)
	}
	return all
}

// consoleHints tell a console which control to show for a field.
func consoleHints(field string, property map[string]any) []any {
	const ui = "urn:alm:descriptor:com.tectonic.ui:"
	if field == "conditions" {
		return []any{"urn:alm:descriptor:io.kubernetes.conditions"}
	}
	if property["type"] == "boolean" {
		return []any{ui + "booleanSwitch"}
	}
	var hints []any
	values, _ := property["enum"].([]any)
	for _, value := range values {
		hints = append(hints, fmt.Sprintf("%sselect:%v", ui, value))
	}
	return hints
}

var (
	hump     = regexp.MustCompile(`([a-z])([A-Z])`)
	acronyms = strings.NewReplacer("Oidc", "OIDC", "Id", "ID")
)

// displayName returns the name of a field for people, such as Deletion Policy for deletionPolicy.
func displayName(field string) string {
	words := hump.ReplaceAllString(field, "$1 $2")
	return acronyms.Replace(strings.ToUpper(words[:1]) + words[1:])
}

// oneLine joins the lines of a description.
func oneLine(description any) string {
	text, _ := description.(string)
	return strings.Join(strings.Fields(text), " ")
}
