package image

import (
	"archive/tar"
	"compress/gzip"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// files returns the headers and contents of an image's files by name.
func files(t *testing.T, image v1.Image) (map[string]*tar.Header, map[string]string) {
	t.Helper()
	r := mutate.Extract(image)
	defer r.Close()
	headers, contents := map[string]*tar.Header{}, map[string]string{}
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return headers, contents
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		headers[h.Name], contents[h.Name] = h, string(data)
	}
}

func digest(t *testing.T, image v1.Image) string {
	t.Helper()
	h, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return h.String()
}

// TestImageIsReproducible builds an image from the same source in two directories.
func TestImageIsReproducible(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "first")
	libraries := fakeLibraries(t)
	pack := func() v1.Image {
		image, err := Local().Mnemo(binary, libraries)
		if err != nil {
			t.Fatal(err)
		}
		return image
	}
	if err := (Source{Root: root, Version: "1.2.3"}).Build(t.Context(), binary); err != nil {
		t.Fatal(err)
	}
	first := pack()
	binary = filepath.Join(t.TempDir(), "second")
	if err := (Source{Root: root, Version: "1.2.3"}).Build(t.Context(), binary); err != nil {
		t.Fatal(err)
	}
	if one, two := digest(t, first), digest(t, pack()); one != two {
		t.Errorf("digests %s and %s, want the same for the same source", one, two)
	}
	if err := os.Truncate(binary, 1000); err != nil {
		t.Fatal(err)
	}
	if digest(t, first) == digest(t, pack()) {
		t.Error("images of different binaries have the same digest")
	}
	stored, err := layout.Write(t.TempDir(), mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: first}))
	if err != nil {
		t.Fatal(err)
	}
	index, err := stored.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Errorf("invalid image: %v", err)
	}
	config, err := first.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/mnemo"}) {
		t.Errorf("config %+v, want /mnemo as an unprivileged user", config.Config)
	}
	headers, contents := files(t, first)
	for name, mode := range map[string]int64{"mnemo": 0o755, "tmp": 0o1777, "etc/passwd": 0o644, "usr/lib/libonnxruntime.so.1": 0o755} {
		if h := headers[name]; h == nil || h.Mode != mode || h.Uid != 0 || h.ModTime.Unix() != 0 {
			t.Errorf("%s: %+v, want mode %o, owner root and no modification time", name, h, mode)
		}
	}
	if roots := x509.NewCertPool(); !roots.AppendCertsFromPEM([]byte(contents["etc/ssl/certs/ca-certificates.crt"])) {
		t.Error("the image contains no certificate authorities")
	}
}

// fakeLibraries returns a system with libraries, of which libstdc++ is a link as in its
// package, and the files of onnxruntime.
func fakeLibraries(t *testing.T) Libraries {
	t.Helper()
	l := Libraries{System: t.TempDir(), ONNXRuntime: t.TempDir()}
	libraries := filepath.Join(l.System, "usr", "lib", "x86_64-linux-gnu")
	if err := os.MkdirAll(libraries, 0o755); err != nil {
		t.Fatal(err)
	}
	names := []string{"ld-linux-x86-64.so.2", "libc.so.6", "libdl.so.2", "libgcc_s.so.1", "libm.so.6", "libpthread.so.0", "librt.so.1", "libstdc++.so.6.0.30"}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(libraries, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("libstdc++.so.6.0.30", filepath.Join(libraries, "libstdc++.so.6")); err != nil {
		t.Fatal(err)
	}
	documentation := filepath.Join(l.System, "usr", "share", "doc", "libc6")
	if err := os.MkdirAll(documentation, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(documentation, "copyright"), []byte("GNU"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"libonnxruntime.so.1", "LICENSE", "ThirdPartyNotices.txt"} {
		if err := os.WriteFile(filepath.Join(l.ONNXRuntime, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// TestLibraries checks that a linked library has its content under the name that programs
// load, and that a missing one is reported.
func TestLibraries(t *testing.T) {
	t.Parallel()
	l := fakeLibraries(t)
	image, err := Target{Arch: "amd64", Compression: gzip.BestCompression}.Mnemo(filepath.Join(l.ONNXRuntime, "LICENSE"), l)
	if err != nil {
		t.Fatal(err)
	}
	headers, contents := files(t, image)
	if got := contents["lib/x86_64-linux-gnu/libstdc++.so.6"]; got != "libstdc++.so.6.0.30" {
		t.Errorf("libstdc++.so.6 contains %q", got)
	}
	if h := headers["lib64/ld-linux-x86-64.so.2"]; h == nil || h.Linkname != "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2" {
		t.Errorf("loader %+v, want a link", h)
	}
	if got := contents["usr/share/doc/libc6/copyright"]; got != "GNU" {
		t.Errorf("license of libc6 %q, want that of its package", got)
	}
	if err := os.Remove(filepath.Join(l.System, "usr/lib/x86_64-linux-gnu/libm.so.6")); err != nil {
		t.Fatal(err)
	}
	if _, err := systemLibraries(l.System, "amd64"); err == nil || !strings.Contains(err.Error(), "libm.so.6") {
		t.Errorf("error %v, want the missing library", err)
	}
}

func TestWriteArchive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	binary := filepath.Join(dir, "program")
	if err := os.WriteFile(binary, []byte("x"), 0o755); err != nil {
		t.Fatal(err)
	}
	image, err := Local().Program(binary, "-x")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "image.tar")
	if err := WriteArchive(path, "registry.test:5000/a/program:1", image); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for archive := tar.NewReader(f); ; {
		h, err := archive.Next()
		if err != nil {
			t.Fatalf("no index in the archive: %v", err)
		}
		if h.Name != "index.json" {
			continue
		}
		var index struct {
			Manifests []struct {
				Digest      string
				Annotations map[string]string
			}
		}
		if err := json.NewDecoder(archive).Decode(&index); err != nil {
			t.Fatal(err)
		}
		if len(index.Manifests) != 1 {
			t.Fatalf("len(index.Manifests) = %d, want 1", len(index.Manifests))
		}
		if index.Manifests[0].Digest != digest(t, image) {
			t.Fatalf("index.Manifests[0].Digest = %v, want %v", index.Manifests[0].Digest, digest(t, image))
		}
		want := map[string]string{
			"io.containerd.image.name":          "registry.test:5000/a/program:1",
			"org.opencontainers.image.ref.name": "1",
		}
		if diff := cmp.Diff(want, index.Manifests[0].Annotations); diff != "" {
			t.Errorf("annotations (-want +got):\n%s", diff)
		}
		return
	}
}
