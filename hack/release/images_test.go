package main

import (
	"archive/tar"
	"debug/elf"
	"errors"
	"io"
	"path"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func pushedIndex(t *testing.T, reference string) v1.ImageIndex {
	t.Helper()
	digest, err := name.NewDigest(reference)
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(digest)
	if err != nil {
		t.Fatalf("images.txt names an image that was not pushed: %v", err)
	}
	return index
}

// contents returns the files of one platform's image by name. The content of a link is its target.
func contents(t *testing.T, index v1.ImageIndex, arch string) map[string]string {
	t.Helper()
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, m := range manifest.Manifests {
		if m.Platform.Architecture != arch {
			continue
		}
		img, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		if config, err := img.ConfigFile(); err != nil || config.Architecture != arch {
			t.Errorf("config %+v, error %v, want architecture %s", config, err, arch)
		}
		extracted := mutate.Extract(img)
		t.Cleanup(func() { _ = extracted.Close() })
		for archive := tar.NewReader(extracted); ; {
			header, err := archive.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			content, err := io.ReadAll(archive)
			if err != nil {
				t.Fatal(err)
			}
			if header.Typeflag != tar.TypeDir {
				files[header.Name] = header.Linkname + string(content)
			}
		}
	}
	return files
}

// checkPrograms checks that every program and library of a platform's image is for its machine, and that the
// image contains what the program and its libraries load.
func checkPrograms(t *testing.T, index v1.ImageIndex, arch string, machine elf.Machine) {
	t.Helper()
	files := contents(t, index, arch)
	libraries := map[string]bool{}
	for file := range files {
		libraries[path.Base(file)] = true
	}
	for file, content := range files {
		if !strings.HasPrefix(content, elf.ELFMAG) {
			continue
		}
		program, err := elf.NewFile(strings.NewReader(content))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if program.Machine != machine {
			t.Errorf("%s in the image for %s is for %s", file, arch, program.Machine)
		}
		needed, err := program.ImportedLibraries()
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, library := range needed {
			if !libraries[library] {
				t.Errorf("%s in the image for %s loads %s, which is missing", file, arch, library)
			}
		}
		interpreter := program.Section(".interp")
		if interpreter == nil || file != "mnemo" {
			continue
		}
		loader, err := interpreter.Data()
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		link := strings.Trim(string(loader), "/\x00")
		if target := strings.TrimPrefix(files[link], "/"); !strings.HasPrefix(files[target], elf.ELFMAG) {
			t.Errorf("%s in the image for %s uses the loader %s, which is missing", file, arch, link)
		}
	}
}
