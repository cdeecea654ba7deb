package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"go.yaml.in/yaml/v3"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// packageChart packages the chart with the release's version and returns the
// path of the package. The list of images is for Artifact Hub.
func (r *release) packageChart(ctx context.Context, images []published) (string, error) {
	chart := filepath.Join(r.work, "chart", "mnemo")
	if err := os.CopyFS(chart, os.DirFS(filepath.Join(r.Root, "charts/mnemo"))); err != nil {
		return "", fmt.Errorf("package chart: %w", err)
	}
	if err := r.annotate(filepath.Join(chart, "Chart.yaml"), images); err != nil {
		return "", err
	}
	if _, err := devenv.Tool(ctx, r.Root, "helm", "package", chart, "--version", r.Version, "--app-version", r.Version, "--destination", r.Out); err != nil {
		return "", err
	}
	name := "mnemo-" + r.Version + ".tgz"
	r.logf("built   %s", name)
	return r.path(name), nil
}

// annotate adds the images to the chart's metadata. For a release without a suffix, it
// requires the version in the checkout, so that the tagged chart installs the tagged version.
func (r *release) annotate(path string, images []published) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read chart: %w", err)
	}
	var chart struct {
		Version     string            `yaml:"version"`
		AppVersion  string            `yaml:"appVersion"`
		Annotations map[string]string `yaml:"annotations"`
		Rest        map[string]any    `yaml:",inline"`
	}
	if err := yaml.Unmarshal(content, &chart); err != nil {
		return fmt.Errorf("read Chart.yaml: %w", err)
	}
	if !strings.Contains(r.Version, "-") && (chart.Version != r.Version || chart.AppVersion != r.Version) {
		return fmt.Errorf("charts/mnemo/Chart.yaml: version is %s and appVersion is %s, expected %s", chart.Version, chart.AppVersion, r.Version)
	}
	var list strings.Builder
	for _, p := range images {
		reference, err := p.reference()
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "- name: %s\n  image: %s\n", p.title(), reference)
	}
	if chart.Annotations == nil {
		chart.Annotations = map[string]string{}
	}
	chart.Annotations["artifacthub.io/images"] = list.String()
	if content, err = yaml.Marshal(&chart); err != nil {
		return fmt.Errorf("write Chart.yaml: %w", err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return fmt.Errorf("write chart: %w", err)
	}
	return nil
}

// pushChart pushes the package as an OCI artifact. The file chart.txt has its reference, for
// signing.
func (r *release) pushChart(ctx context.Context, path string) error {
	registry, err := name.NewRepository(r.Registry + "/charts")
	if err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	args := []string{"push", path, "oci://" + registry.String()}
	if registry.Scheme() == "http" { // a registry on this machine
		args = append(args, "--plain-http")
	}
	if _, err := devenv.Tool(ctx, r.Root, "helm", args...); err != nil {
		return err
	}
	chart, err := remote.Head(registry.Registry.Repo(registry.RepositoryStr(), "mnemo").Tag(r.Version),
		remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return fmt.Errorf("read digest of the chart: %w", err)
	}
	reference := fmt.Sprintf("%s/mnemo@%s", registry, chart.Digest)
	if err := os.WriteFile(r.path("chart.txt"), []byte(reference+"\n"), 0o644); err != nil {
		return fmt.Errorf("write reference of the chart: %w", err)
	}
	r.logf("pushed  %s", reference)
	return nil
}
