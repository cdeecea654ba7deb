package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: chartdocs CHART")
		os.Exit(2)
	}
	readme, err := generate(os.Args[1])
	if err == nil {
		err = os.WriteFile(filepath.Join(os.Args[1], "README.md"), []byte(readme), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chartdocs:", err)
		os.Exit(1)
	}
}

// generate returns the README of the chart in dir.
func generate(dir string) (string, error) {
	var metadata struct {
		Description string `yaml:"description"`
		Version     string `yaml:"version"`
		KubeVersion string `yaml:"kubeVersion"`
		Home        string `yaml:"home"`
	}
	raw, err := os.ReadFile(filepath.Join(dir, "Chart.yaml"))
	if err != nil {
		return "", fmt.Errorf("read chart: %w", err)
	}
	if err := yaml.Unmarshal(raw, &metadata); err != nil {
		return "", fmt.Errorf("parse Chart.yaml: %w", err)
	}
	raw, err = os.ReadFile(filepath.Join(dir, "values.yaml"))
	if err != nil {
		return "", fmt.Errorf("read values: %w", err)
	}
	sections, err := readSections(raw)
	if err != nil {
		return "", fmt.Errorf("values.yaml: %w", err)
	}
	kubernetes := strings.TrimSuffix(strings.TrimPrefix(metadata.KubeVersion, ">="), "-0")
	// Artifact Hub shows the README outside the repository, so links are absolute.
	files := metadata.Home + "/blob/main/"
	intro := fmt.Sprintf(header, metadata.Description, metadata.Version, kubernetes, files, files, files, files)
	return intro + render(sections), nil
}

const header = `# Mnemo chart

<!-- Generated from values.yaml by hack/chartdocs. Do not edit. -->

%s

Chart version %s, for Kubernetes %s or newer and Helm 3.17 or newer.

` + "```sh" + `
helm install mnemo charts/mnemo -n mnemo --create-namespace -f mnemo.yaml
` + "```" + `

[docs/install.md](%sdocs/install.md) explains the installation, [docs/gitops.md](%sdocs/gitops.md) Argo CD, Flux and
parent charts. The files in [presets](%scharts/mnemo/presets) set sizes: pass one before your own values, as in
` + "`-f charts/mnemo/presets/medium.yaml -f mnemo.yaml`" + `. [images.txt](%scharts/mnemo/images.txt) lists the images.

## Values
`
