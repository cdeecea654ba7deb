package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/mnemo-dev/mnemo/hack/image"
	"github.com/mnemo-dev/mnemo/hack/olm"
)

// buildBundle writes the bundle for the Operator Lifecycle Manager (OLM) from the packaged chart, and returns its image.
func (r *release) buildBundle(ctx context.Context, chart string, program published) (published, error) {
	digest, err := program.index.Digest()
	if err != nil {
		return published{}, fmt.Errorf("digest of %s: %w", program.name, err)
	}
	source := olm.Source{Root: r.Root, Chart: chart, Version: r.Version, Image: program.name.Context().Name(), Reference: digest.String()}
	for _, t := range r.Targets {
		if t.os == "linux" {
			source.Arches = append(source.Arches, t.arch)
		}
	}
	files, err := source.Bundle(ctx)
	if err != nil {
		return published{}, err
	}
	var layer image.Layer
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if err := r.writeBundleFile(path, files[path]); err != nil {
			return published{}, err
		}
		layer = append(layer, image.File{Path: "/" + path, Mode: 0o644, Content: files[path]})
	}
	r.logf("built   bundle")
	return r.bundleImage(source, layer)
}

func (r *release) writeBundleFile(path string, content []byte) error {
	file := r.path(filepath.Join("bundle", path))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	if err := os.WriteFile(file, content, 0o644); err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	return nil
}

// bundleImage returns the image of the bundle for each architecture: nodes pull it like any image.
func (r *release) bundleImage(source olm.Source, layer image.Layer) (published, error) {
	tag, err := name.NewTag(r.Registry + "/mnemo-bundle:" + r.Version)
	if err != nil {
		return published{}, fmt.Errorf("registry: %w", err)
	}
	bundle := published{name: tag, index: empty.Index}
	for _, arch := range source.Arches {
		img, err := image.Target{Arch: arch, Compression: r.compression}.New([]image.Layer{layer}, v1.Config{Labels: source.Annotations()})
		if err != nil {
			return published{}, err
		}
		bundle.index = mutate.AppendManifests(bundle.index, mutate.IndexAddendum{
			Add:        img,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	return bundle, nil
}
