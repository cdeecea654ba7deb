package charts_test

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const chart = "mnemo"

// object is a rendered Kubernetes object.
type object map[string]any

func (o object) kind() string { s, _ := o["kind"].(string); return s }

// at returns the value at a path of keys, or nil.
func (o object) at(keys ...string) any {
	var v any = map[string]any(o)
	for _, k := range keys {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[k]
	}
	return v
}

// list returns the objects of a list, or none if v is not a list.
func list(v any) []map[string]any {
	var all []map[string]any
	items, _ := v.([]any)
	for _, i := range items {
		if m, ok := i.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}

func (o object) name() string { s, _ := o.at("metadata", "name").(string); return s }

// helm runs Helm and returns its standard output. An error contains its standard
// error.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "../hack/tool.sh", append([]string{"helm"}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), errors.New(stderr.String() + stdout.String())
	}
	return stdout.String(), nil
}

// render returns the manifests of a release called mnemo.
func render(t *testing.T, args ...string) string {
	t.Helper()
	return renderChart(t, chart, args...)
}

func renderChart(t *testing.T, chart string, args ...string) string {
	t.Helper()
	out, err := helm(t, append([]string{"template", "mnemo", chart, "--kube-version", "1.37.0"}, args...)...)
	if err != nil {
		t.Fatalf("helm template %s: %v", strings.Join(args, " "), err)
	}
	return out
}

// parse splits manifests into objects.
func parse(t *testing.T, manifests string) []object {
	t.Helper()
	var all []object
	for d := yaml.NewDecoder(strings.NewReader(manifests)); ; {
		var o map[string]any // type object would also be used for nested maps
		if err := d.Decode(&o); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("parse manifests: %v", err)
		}
		if o != nil {
			all = append(all, o)
		}
	}
}

// cases returns the values to render, as arguments of Helm, by name: each file in
// testdata, and each preset with the values that it requires.
func cases(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, f := range glob(t, "testdata/values/*.yaml") {
		all[baseName(f)] = []string{"-f", f}
	}
	for _, f := range glob(t, "mnemo/presets/*.yaml") {
		all["preset-"+baseName(f)] = []string{"-f", f, "-f", "testdata/stores.yaml"}
	}
	return all
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no files match %s: %v", pattern, err)
	}
	return files
}

// baseName returns the name of a values file without directory and extension.
func baseName(path string) string { return strings.TrimSuffix(filepath.Base(path), ".yaml") }

// podSpecs returns the pod template of every workload, by kind/name.
func podSpecs(objects []object) map[string]object {
	pods := map[string]object{}
	for _, o := range objects {
		switch o.kind() {
		case "Deployment", "Job":
			template, _ := o.at("spec", "template").(map[string]any)
			pods[o.kind()+"/"+o.name()] = template
		case "StatefulSet":
			pods["StatefulSet/"+o.name()] = statefulPod(o)
		case "CronJob":
			template, _ := o.at("spec", "jobTemplate", "spec", "template").(map[string]any)
			pods[o.kind()+"/"+o.name()] = template
		case "Pod":
			pods["Pod/"+o.name()] = o
		}
	}
	return pods
}

// statefulPod returns the pod template of a StatefulSet, with a volume for each claim as its controller adds it.
func statefulPod(o object) object {
	template, _ := o.at("spec", "template").(map[string]any)
	spec, _ := template["spec"].(map[string]any)
	volumes, _ := spec["volumes"].([]any)
	claims, _ := o.at("spec", "volumeClaimTemplates").([]any)
	for _, c := range claims {
		claim, _ := c.(map[string]any)
		name := object(claim).name()
		volumes = append(volumes, map[string]any{"name": name, "persistentVolumeClaim": map[string]any{"claimName": name}})
	}
	template, spec = maps.Clone(template), maps.Clone(spec)
	spec["volumes"], template["spec"] = volumes, spec
	return template
}
