package olm

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// Source is the input of a bundle.
type Source struct {
	// Root is the top of the checkout.
	Root string
	// Chart is the directory or the package of the chart.
	Chart string
	// Version is the version of the release, without a leading v.
	Version string
	// Image is the repository of the image with the default model, so that only the stores have to be configured.
	// Reference is its digest or tag.
	Image, Reference string
	// Arches are the architectures of the image, as in GOARCH.
	Arches []string
}

// Bundle returns the files of the bundle by their paths. The Deployments and permissions are those of the chart.
func (s Source) Bundle(ctx context.Context) (map[string][]byte, error) {
	objects, err := s.render(ctx)
	if err != nil {
		return nil, err
	}
	csv, err := s.serviceVersion(objects)
	if err != nil {
		return nil, err
	}
	manifests := map[string]any{
		"manifests/mnemo.clusterserviceversion.yaml": csv,
		"manifests/mnemo.dev_tenants.yaml":           objects.definition,
		"metadata/annotations.yaml":                  map[string]any{"annotations": s.Annotations()},
	}
	for _, o := range objects.others {
		manifests[fmt.Sprintf("manifests/%s.%s.yaml", o.GetName(), strings.ToLower(o.GetKind()))] = o.Object
	}
	files := map[string][]byte{}
	for path, manifest := range manifests {
		if files[path], err = yaml.Marshal(manifest); err != nil {
			return nil, fmt.Errorf("write %s of the bundle: %w", path, err)
		}
	}
	return files, nil
}

// Annotations describe the bundle to OLM. They are in a file and must be the labels of the image. Pre-releases have their own channel.
func (s Source) Annotations() map[string]string {
	channel := "stable"
	if strings.Contains(s.Version, "-") {
		channel = "candidate"
	}
	const prefix = "operators.operatorframework.io.bundle."
	return map[string]string{
		prefix + "mediatype.v1":       "registry+v1",
		prefix + "manifests.v1":       "manifests/",
		prefix + "metadata.v1":        "metadata/",
		prefix + "package.v1":         "mnemo",
		prefix + "channels.v1":        channel,
		prefix + "channel.default.v1": channel,
	}
}

// read decodes a YAML file of the checkout.
func (s Source) read(path string, into any) error {
	content, err := os.ReadFile(filepath.Join(s.Root, path))
	if err != nil {
		return fmt.Errorf("read manifest: %w", err)
	}
	if err := yaml.Unmarshal(bytes.TrimPrefix(content, []byte("---\n")), into); err != nil {
		return fmt.Errorf("read manifest %s: %w", path, err)
	}
	return nil
}
