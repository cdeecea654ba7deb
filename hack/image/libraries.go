package image

import (
	"fmt"
	"os"
	"path/filepath"
)

// libraryNames are the libraries of the program's loader and of onnxruntime, as
// in a distroless image for C++ programs.
var libraryNames = []string{
	"ld-linux-*.so.*", "libc.so.6", "libdl.so.2", "libgcc_s.so.1", "libm.so.6", "libpthread.so.0", "librt.so.1", "libstdc++.so.6",
}

// loaders are the paths of the loader in programs, by architecture.
var loaders = map[string]string{"amd64": "/lib64/ld-linux-x86-64.so.2", "arm64": "/lib/ld-linux-aarch64.so.1"}

// systemLibraries returns a layer with the libraries from a directory of unpacked packages, and
// the licenses of these packages.
func systemLibraries(system, arch string) (Layer, error) {
	var files Layer
	for i, name := range libraryNames {
		found, err := filepath.Glob(filepath.Join(system, "lib", "*-linux-gnu", name))
		if err == nil && len(found) == 0 {
			found, err = filepath.Glob(filepath.Join(system, "usr", "lib", "*-linux-gnu", name))
		}
		if err != nil || len(found) != 1 {
			return nil, fmt.Errorf("%s contains %d libraries %s instead of one", system, len(found), name)
		}
		source, err := filepath.EvalSymlinks(found[0])
		if err != nil {
			return nil, fmt.Errorf("find library of an image: %w", err)
		}
		path := filepath.Join("/lib", filepath.Base(filepath.Dir(found[0])), filepath.Base(found[0]))
		files = append(files, File{Path: path, Mode: 0o755, From: source})
		if i == 0 {
			files = append(files, File{Path: loaders[arch], Mode: os.ModeSymlink | 0o777, Content: []byte(path)})
		}
	}
	licenses, err := filepath.Glob(filepath.Join(system, "usr", "share", "doc", "*", "copyright"))
	if err != nil || len(licenses) == 0 {
		return nil, fmt.Errorf("%s contains no licenses", system)
	}
	for _, license := range licenses {
		path := filepath.Join("/usr/share/doc", filepath.Base(filepath.Dir(license)), "copyright")
		files = append(files, File{Path: path, Mode: 0o644, From: license})
	}
	return files, nil
}
