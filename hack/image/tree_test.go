package image

import (
	"archive/tar"
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// TestTree checks that files keep their type, mode and content but not their owner
// and modification time, and that keep filters them.
func TestTree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, d := range []string{"lib", "doc"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range map[string]os.FileMode{"lib/library.so.1": 0o644, "program": 0o755, "doc/readme": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("library.so.1", filepath.Join(dir, "lib", "library.so")); err != nil {
		t.Fatal(err)
	}
	layer, err := Tree(dir, "/opt", func(path string) bool { return path != "/opt/doc" })
	if err != nil {
		t.Fatal(err)
	}
	image, err := Local().New([]Layer{layer}, v1.Config{User: "0:0"})
	if err != nil {
		t.Fatal(err)
	}
	headers, contents := files(t, image)
	for name, want := range map[string]tar.Header{
		"opt/program":          {Typeflag: tar.TypeReg, Mode: 0o755},
		"opt/lib":              {Typeflag: tar.TypeDir, Mode: 0o755},
		"opt/lib/library.so.1": {Typeflag: tar.TypeReg, Mode: 0o644},
		"opt/lib/library.so":   {Typeflag: tar.TypeSymlink, Mode: 0o777, Linkname: "library.so.1"},
	} {
		h := headers[name]
		if h == nil || h.Typeflag != want.Typeflag || h.Mode != want.Mode || h.Linkname != want.Linkname || h.Uid != 0 || h.ModTime.Unix() != 0 {
			t.Errorf("%s: %+v, want %+v, owner root and no modification time", name, h, want)
		}
	}
	if contents["opt/program"] != "program" {
		t.Errorf("content of the program %q, want %q", contents["opt/program"], "program")
	}
	for name := range headers {
		if filepath.Base(filepath.Dir(name)) == "doc" || filepath.Base(name) == "doc" {
			t.Errorf("the image contains %s", name)
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "0:0" {
		t.Errorf("user %q, want that of the configuration", config.Config.User)
	}
}
