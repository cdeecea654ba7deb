package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/image"
)

// published is an image for several architectures.
type published struct {
	name  name.Tag
	index v1.ImageIndex
}

// reference returns the name with the digest, which cannot be moved to another image.
func (p published) reference() (string, error) {
	digest, err := p.index.Digest()
	if err != nil {
		return "", fmt.Errorf("digest of %s: %w", p.name, err)
	}
	return p.name.String() + "@" + digest.String(), nil
}

// buildImages builds the product's image and writes it as an OCI layout. For signing, the file
// images.txt lists its reference, and sboms.txt the image and the SBOM of each platform.
func (r *release) buildImages(ctx context.Context, binaries []binary) ([]published, error) {
	index, err := productIndex(ctx, binaries)
	if err != nil {
		return nil, err
	}
	tag, err := name.NewTag(r.Registry + "/mnemo:" + r.Version)
	if err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	images := []published{{name: tag, index: index}}
	var list strings.Builder
	for _, p := range images {
		reference, err := p.reference()
		if err != nil {
			return nil, err
		}
		if _, err := layout.Write(r.path("images/"+p.name.RepositoryStr()), mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: p.index})); err != nil {
			return nil, fmt.Errorf("write image %s: %w", p.name, err)
		}
		list.WriteString(reference + "\n")
		r.logf("built   %s", reference)
	}
	if err := os.WriteFile(r.path("images.txt"), []byte(list.String()), 0o644); err != nil {
		return nil, fmt.Errorf("write image list: %w", err)
	}
	return images, r.writeSBOMList(images[0])
}

func (r *release) writeSBOMList(product published) error {
	manifest, err := product.index.IndexManifest()
	if err != nil {
		return fmt.Errorf("read manifest of %s: %w", product.name, err)
	}
	var list strings.Builder
	for _, m := range manifest.Manifests {
		fmt.Fprintf(&list, "%s@%s %s\n", product.name.Repository, m.Digest, r.file(target{m.Platform.OS, m.Platform.Architecture}, "cdx.json"))
	}
	if err := os.WriteFile(r.path("sboms.txt"), []byte(list.String()), 0o644); err != nil {
		return fmt.Errorf("write SBOM list: %w", err)
	}
	return nil
}

// productIndex builds the image of each binary for Linux.
func productIndex(ctx context.Context, binaries []binary) (v1.ImageIndex, error) {
	cache, err := devenv.OpenCache(devenv.NewProgress(os.Stderr))
	if err != nil {
		return nil, err
	}
	var index v1.ImageIndex = empty.Index
	for _, b := range binaries {
		if b.os != "linux" {
			continue
		}
		system, onnxruntime, err := devenv.ImageLibraries(ctx, cache, b.arch)
		if err != nil {
			return nil, err
		}
		img, err := image.Release(b.arch).Mnemo(b.path, image.Libraries{System: system, ONNXRuntime: onnxruntime})
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        img,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: b.os, Architecture: b.arch}},
		})
	}
	return index, nil
}

func (r *release) pushImages(ctx context.Context, images []published) error {
	for _, p := range images {
		if err := remote.WriteIndex(p.name, p.index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
			return fmt.Errorf("push %s: %w", p.name, err)
		}
		r.logf("pushed  %s", p.name)
	}
	return nil
}
