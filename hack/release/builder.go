package main

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"go.yaml.in/yaml/v3"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/image"
)

// The indexes of builder.images.
const (
	product = iota
	model
	bundled
)

// sbomSuffixes are the suffixes of the SBOM of each image.
var sbomSuffixes = []string{product: "image.cdx.json", model: "model.cdx.json", bundled: "image-model.cdx.json"}

// builder builds the images of every platform.
type builder struct {
	cache     *devenv.Cache
	model     string // directory of the model
	modelName string
	modelPath string // its path in the image with both
	images    []published
}

func (r *release) newBuilder(ctx context.Context) (*builder, error) {
	cache, err := devenv.OpenCache(devenv.NewProgress(os.Stderr))
	if err != nil {
		return nil, err
	}
	local, err := r.localModel()
	if err != nil {
		return nil, err
	}
	b := &builder{cache: cache, modelName: local.Model, modelPath: local.Path}
	if b.model, err = devenv.Model(ctx, cache, local.Model); err != nil {
		return nil, err
	}
	for _, suffix := range []string{"/mnemo:" + r.Version, "/" + path.Base(local.Image.Reference), "/mnemo:" + r.Version + "-model"} {
		tag, err := name.NewTag(r.Registry + suffix)
		if err != nil {
			return nil, fmt.Errorf("registry: %w", err)
		}
		b.images = append(b.images, published{name: tag, index: empty.Index})
	}
	return b, nil
}

// localModel is embeddings.local of the chart's values.
type localModel struct {
	Model, Path string
	Image       struct{ Reference string }
}

// localModel returns the chart's default model, whose image the release contains under the tag in the chart.
func (r *release) localModel() (localModel, error) {
	var values struct{ Embeddings struct{ Local localModel } }
	content, err := os.ReadFile(filepath.Join(r.Root, "charts/mnemo/values.yaml"))
	if err != nil {
		return localModel{}, fmt.Errorf("read values of the chart: %w", err)
	}
	if err := yaml.Unmarshal(content, &values); err != nil {
		return localModel{}, fmt.Errorf("read values of the chart: %w", err)
	}
	return values.Embeddings.Local, nil
}

// add adds the images of one platform, and writes their SBOMs.
func (b *builder) add(ctx context.Context, r *release, program binary) error {
	system, onnxruntime, err := devenv.ImageLibraries(ctx, b.cache, program.arch)
	if err != nil {
		return err
	}
	boms, err := b.boms(r.Version, program, system)
	if err != nil {
		return err
	}
	for i, bom := range boms {
		if err := writeSBOM(r.path(r.file(program.target, sbomSuffixes[i])), bom); err != nil {
			return err
		}
	}
	target := image.Target{Arch: program.arch, Compression: r.compression}
	images := make([]v1.Image, len(b.images))
	if images[product], err = target.Mnemo(program.path, image.Libraries{System: system, ONNXRuntime: onnxruntime}); err != nil {
		return err
	}
	if images[model], err = target.Model(b.model); err != nil {
		return err
	}
	files, err := image.ModelLayer(b.model, b.modelPath)
	if err != nil {
		return err
	}
	if images[bundled], err = target.Append(images[product], files); err != nil {
		return err
	}
	for i, img := range images {
		b.images[i].index = mutate.AppendManifests(b.images[i].index, mutate.IndexAddendum{
			Add:        img,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: program.os, Architecture: program.arch}},
		})
	}
	return nil
}
