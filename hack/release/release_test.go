package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/mnemo-dev/mnemo/hack/changelog"
)

// TestRelease builds a release candidate and pushes it to a registry.
func TestRelease(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(registry.New(registry.Logger(slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo))))
	t.Cleanup(server.Close)
	const version = "0.0.1-rc.1"
	r := release{
		Version:  version,
		Registry: strings.TrimPrefix(server.URL, "http://") + "/mnemo-dev",
		Targets:  []target{{"linux", "amd64"}, {"linux", "arm64"}},
		Root:     "../..",
		Out:      t.TempDir(),
		Push:     true,
		// Compressing these files well would need most of the test's processor time.
		compression: gzip.NoCompression,
		log:         t.Output(),
	}
	if err := r.run(t.Context()); err != nil {
		t.Fatal(err)
	}

	t.Run("Files", func(t *testing.T) {
		t.Parallel()
		want := []string{
			"bundle", "chart.txt", "checksums.txt", "images", "images.txt", "mnemo-0.0.1-rc.1.tgz", "mnemo-client-0.0.1-rc.1.tgz",
			"mnemo_0.0.1-rc.1_linux_amd64.cdx.json", "mnemo_0.0.1-rc.1_linux_amd64.image-model.cdx.json",
			"mnemo_0.0.1-rc.1_linux_amd64.image.cdx.json", "mnemo_0.0.1-rc.1_linux_amd64.model.cdx.json", "mnemo_0.0.1-rc.1_linux_amd64.tar.gz",
			"mnemo_0.0.1-rc.1_linux_arm64.cdx.json", "mnemo_0.0.1-rc.1_linux_arm64.image-model.cdx.json",
			"mnemo_0.0.1-rc.1_linux_arm64.image.cdx.json", "mnemo_0.0.1-rc.1_linux_arm64.model.cdx.json", "mnemo_0.0.1-rc.1_linux_arm64.tar.gz",
			"mnemo_client-0.0.1rc1-py3-none-any.whl", "mnemo_client-0.0.1rc1.tar.gz", "notes.md", "sboms.txt",
		}
		if diff := cmp.Diff(want, names(t, r.Out)); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
	})
	t.Run("Checksums", func(t *testing.T) {
		t.Parallel()
		sums := strings.Split(strings.TrimSpace(read(t, r.path("checksums.txt"))), "\n")
		if len(sums) != 15 {
			t.Errorf("%d checksums, want 15", len(sums))
		}
		for _, line := range sums {
			sum, file, _ := strings.Cut(line, "  ")
			if got := fmt.Sprintf("%x", sha256.Sum256([]byte(read(t, r.path(file))))); got != sum {
				t.Errorf("%s has the sum %s, want %s", file, sum, got)
			}
		}
	})
	t.Run("Archive", func(t *testing.T) {
		t.Parallel()
		want := []string{"mnemo", "LICENSE"}
		if diff := cmp.Diff(want, archived(t, r.path("mnemo_0.0.1-rc.1_linux_arm64.tar.gz"))); diff != "" {
			t.Errorf("archive (-want +got):\n%s", diff)
		}
	})
	t.Run("SBOM", func(t *testing.T) {
		t.Parallel()
		checkSBOMs(t, &r)
	})
	t.Run("Images", func(t *testing.T) {
		t.Parallel()
		var names []string
		for line := range strings.Lines(read(t, r.path("images.txt"))) {
			reference := strings.TrimSpace(line)
			index := pushedIndex(t, reference)
			if err := validate.Index(index); err != nil {
				t.Errorf("%s: invalid image: %v", reference, err)
			}
			if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, platforms(t, index)); diff != "" {
				t.Errorf("%s: platforms (-want +got):\n%s", reference, diff)
			}
			title, _, _ := strings.Cut(path.Base(reference), "@")
			names = append(names, title)
		}
		// The tag of the model's image is the one in the chart's default values.
		want := []string{"mnemo:0.0.1-rc.1", "e5-small-v2-int8:0.1.0", "mnemo:0.0.1-rc.1-model", "mnemo-bundle:0.0.1-rc.1"}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("images (-want +got):\n%s", diff)
		}
	})
	t.Run("Programs", func(t *testing.T) {
		t.Parallel()
		for line := range strings.Lines(read(t, r.path("images.txt"))) {
			index := pushedIndex(t, strings.TrimSpace(line))
			checkPrograms(t, index, "amd64", elf.EM_X86_64)
			checkPrograms(t, index, "arm64", elf.EM_AARCH64)
		}
	})
	t.Run("Model", func(t *testing.T) {
		t.Parallel()
		references := strings.Fields(read(t, r.path("images.txt")))
		separate := contents(t, pushedIndex(t, references[model]), "arm64")
		if diff := cmp.Diff([]string{"model.onnx", "tokenizer.json"}, slices.Sorted(maps.Keys(separate))); diff != "" {
			t.Errorf("files of the model's image (-want +got):\n%s", diff)
		}
		together := contents(t, pushedIndex(t, references[bundled]), "arm64")
		for name, content := range separate {
			if together["models/e5-small-v2-int8/"+name] != content {
				t.Errorf("the image with the model lacks %s at the chart's default path", name)
			}
		}
	})
	t.Run("Bundle", func(t *testing.T) {
		t.Parallel()
		references := strings.Fields(read(t, r.path("images.txt")))
		csv := read(t, r.path("bundle/manifests/mnemo.clusterserviceversion.yaml"))
		if want := "image: " + strings.Replace(references[bundled], ":"+version+"-model", "", 1); !strings.Contains(csv, want) {
			t.Errorf("the bundle does not contain %q:\n%s", want, csv)
		}
		if inImage := contents(t, pushedIndex(t, references[len(references)-1]), "arm64")["manifests/mnemo.clusterserviceversion.yaml"]; inImage != csv {
			t.Errorf("the bundle's image has another ClusterServiceVersion:\n%s", inImage)
		}
	})
	t.Run("SBOMs", func(t *testing.T) {
		t.Parallel()
		lines := strings.Split(strings.TrimSpace(read(t, r.path("sboms.txt"))), "\n")
		if len(lines) != 6 {
			t.Errorf("%d images with an SBOM, want three on two platforms", len(lines))
		}
		for _, line := range lines {
			image, sbom, _ := strings.Cut(line, " ")
			digest, err := name.NewDigest(image)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := remote.Image(digest); err != nil {
				t.Errorf("sboms.txt names an image that was not pushed: %v", err)
			}
			read(t, r.path(sbom))
		}
	})
	t.Run("Chart", func(t *testing.T) {
		t.Parallel()
		reference, err := name.NewDigest(strings.TrimSpace(read(t, r.path("chart.txt"))))
		if err != nil {
			t.Fatal(err)
		}
		pushed, err := remote.Image(reference)
		if err != nil {
			t.Fatalf("the chart was not pushed: %v", err)
		}
		config, err := pushed.RawConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		var chart struct {
			Version, AppVersion string
			Annotations         map[string]string
		}
		if err := json.Unmarshal(config, &chart); err != nil {
			t.Fatal(err)
		}
		if chart.Version != version {
			t.Errorf("version %s, want %s", chart.Version, version)
		}
		if chart.AppVersion != version {
			t.Errorf("appVersion %s, want %s", chart.AppVersion, version)
		}
		for image := range strings.FieldsSeq(read(t, r.path("images.txt"))) {
			ofChart := !strings.Contains(image, "/mnemo-bundle:")
			if got := strings.Contains(chart.Annotations["artifacthub.io/images"], image); got != ofChart {
				t.Errorf("annotation artifacthub.io/images contains %s: %t, want %t", image, got, ofChart)
			}
		}
	})
}

func TestReleaseNotes(t *testing.T) {
	t.Parallel()
	released := changelog.Section{Version: "1.2.0", Date: "2026-12-01", Text: "- Two."}
	pending := changelog.Section{Version: "1.3.0", Date: changelog.Unreleased, Text: "- Three."}
	const fragments = "### Added\n- Four.\n"
	cases := map[string]struct {
		reason             string
		sections           []changelog.Section
		fragments, version string
		want, err          string
	}{
		"Release": {
			reason:   "A release has the notes of its own section only.",
			sections: []changelog.Section{released, {Version: "1.1.0", Date: "2026-11-01", Text: "- One."}}, version: "1.2.0",
			want: "- Two.\n",
		},
		"Candidate": {
			reason:   "A pre-release has the notes of the unreleased changes.",
			sections: []changelog.Section{released}, fragments: fragments, version: "1.3.0-rc.1", want: fragments,
		},
		"CandidateWithSection": {
			reason:   "The unreleased changes can be in a section, too.",
			sections: []changelog.Section{pending, released}, fragments: fragments, version: "1.3.0-rc.1",
			want: "- Three.\n\n" + fragments,
		},
		"NoSection": {
			reason:   "A release without notes is refused.",
			sections: []changelog.Section{released}, version: "1.3.0",
			err: "CHANGELOG.md: run `make changelog VERSION=1.3.0`, and commit the section of the version",
		},
		"Fragments": {
			reason:   "Fragments that were not joined would be missing from the notes.",
			sections: []changelog.Section{released}, fragments: fragments, version: "1.2.0",
			err: "CHANGELOG.md: run `make changelog VERSION=1.2.0`, and commit the section of the version",
		},
		"Unreleased": {
			reason:   "The section of a release has a date.",
			sections: []changelog.Section{pending, released}, version: "1.3.0",
			err: "CHANGELOG.md: run `make changelog VERSION=1.3.0`, and commit the section of the version",
		},
		"EmptyCandidate": {
			reason:   "A pre-release without changes is refused.",
			sections: []changelog.Section{released}, version: "1.3.0-rc.1",
			err: "CHANGELOG.md has no unreleased section, and docs/changelog no fragments",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := releaseNotes(tc.sections, tc.fragments, tc.version)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if message := fmt.Sprint(err); tc.err != "" && message != tc.err {
				t.Errorf("%s Error %q, want %q", tc.reason, message, tc.err)
			}
		})
	}
}

// TestAbsoluteLinks checks that links work on the page of a release, which is not beside the changelog.
func TestAbsoluteLinks(t *testing.T) {
	t.Parallel()
	got := absoluteLinks("See [docs](docs/a.md#b), [Go](https://go.dev).\n", "1.2.0")
	want := "See [docs](https://github.com/mnemo-dev/mnemo/blob/v1.2.0/docs/a.md#b), [Go](https://go.dev).\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
}

// TestPrepare checks the inputs that are refused before anything is built.
func TestPrepare(t *testing.T) {
	t.Parallel()
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		release release
		want    string
	}{
		"LeadingV":  {release{Version: "v1.2.3", Out: t.TempDir()}, `version "v1.2.3": expected a form such as 1.2.3 or 1.2.3-rc.1`},
		"BuildTag":  {release{Version: "1.2.3+5", Out: t.TempDir()}, `version "1.2.3+5": expected a form such as 1.2.3 or 1.2.3-rc.1`},
		"Leftovers": {release{Version: "1.2.3", Out: full}, full + " is not empty: delete it first"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := fmt.Sprint(tc.release.prepare()); got != tc.want {
				t.Errorf("error %q, want %q", got, tc.want)
			}
		})
	}
}

// TestAnnotateVersion checks that a release is refused whose checkout has another version.
func TestAnnotateVersion(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "Chart.yaml")
	if err := os.WriteFile(path, []byte("name: mnemo\nversion: 1.2.2\nappVersion: 1.2.3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := release{Version: "1.2.3"}
	want := "charts/mnemo/Chart.yaml: version is 1.2.2 and appVersion is 1.2.3, expected 1.2.3"
	if got := fmt.Sprint(r.annotate(path, nil)); got != want {
		t.Errorf("error %q, want %q", got, want)
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func archived(t *testing.T, path string) []string {
	t.Helper()
	compressed, err := gzip.NewReader(strings.NewReader(read(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for archive := tar.NewReader(compressed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, header.Name)
	}
}

func platforms(t *testing.T, index v1.ImageIndex) []string {
	t.Helper()
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.String())
	}
	return platforms
}
