package main

import (
	"context"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
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

// title names the image within the release.
func (p published) title() string {
	return path.Base(p.name.RepositoryStr()) + ":" + p.name.TagStr()
}

// buildImages builds the images that the chart uses: the product's, the default model's, and one with both
// for embeddings.local.source=bundled.
func (r *release) buildImages(ctx context.Context, binaries []binary) ([]published, error) {
	b, err := r.newBuilder(ctx)
	if err != nil {
		return nil, err
	}
	for _, program := range binaries {
		if program.os != "linux" {
			continue
		}
		if err := b.add(ctx, r, program); err != nil {
			return nil, err
		}
	}
	return b.images, nil
}

// writeImages writes all images as one OCI layout. For signing, the file images.txt lists their references, and
// sboms.txt each platform of those with an SBOM.
func (r *release) writeImages(images []published) error {
	if err := r.writeLayout(images); err != nil {
		return err
	}
	var list strings.Builder
	for _, p := range images {
		reference, err := p.reference()
		if err != nil {
			return err
		}
		list.WriteString(reference + "\n")
		r.logf("built   %s", reference)
	}
	if err := os.WriteFile(r.path("images.txt"), []byte(list.String()), 0o644); err != nil {
		return fmt.Errorf("write image list: %w", err)
	}
	return r.writeSBOMList(images)
}

// writeLayout writes the images into one OCI layout. The reference of each is its tag.
func (r *release) writeLayout(images []published) error {
	var all v1.ImageIndex = empty.Index
	for _, p := range images {
		all = mutate.AppendManifests(all, mutate.IndexAddendum{
			Add:        p.index,
			Descriptor: v1.Descriptor{Annotations: map[string]string{"org.opencontainers.image.ref.name": p.name.String()}},
		})
	}
	if _, err := layout.Write(r.path("images"), all); err != nil {
		return fmt.Errorf("write images: %w", err)
	}
	return nil
}

func (r *release) writeSBOMList(images []published) error {
	var list strings.Builder
	for i, suffix := range sbomSuffixes {
		p := images[i]
		manifest, err := p.index.IndexManifest()
		if err != nil {
			return fmt.Errorf("read manifest of %s: %w", p.name, err)
		}
		for _, m := range manifest.Manifests {
			fmt.Fprintf(&list, "%s@%s %s\n", p.name.Repository, m.Digest, r.file(target{m.Platform.OS, m.Platform.Architecture}, suffix))
		}
	}
	if err := os.WriteFile(r.path("sboms.txt"), []byte(list.String()), 0o644); err != nil {
		return fmt.Errorf("write SBOM list: %w", err)
	}
	return nil
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
