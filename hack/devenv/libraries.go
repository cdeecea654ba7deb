package devenv

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// ImageLibraries returns the directories of the libraries in an image of Mnemo, for an
// architecture: one with the C and C++ libraries, and that of onnxruntime.
func ImageLibraries(ctx context.Context, cache *Cache, arch string) (system, onnxruntime string, err error) {
	release, err := osRelease()
	if err != nil {
		return "", "", err
	}
	name := release["ID"] + release["VERSION_ID"] + "-" + arch
	a := apt{dir: filepath.Join(cache.Root, "apt-"+name)}
	if a.foreign, err = emptySystem(a.dir, release, arch); err != nil {
		return "", "", err
	}
	system, err = a.ensure(ctx, cache, Entry{
		Key:   "libraries-" + name + "-",
		Title: "C and C++ libraries",
		Doing: "downloading from the distribution with apt-get, 4 MB",
		Space: 200 << 20,
		Fill:  func(context.Context, string) error { return nil },
	}, []string{"libc6", "libgcc-s1", "libstdc++6"})
	if err != nil {
		return "", "", err
	}
	onnxruntime, err = ONNXRuntime(ctx, cache, arch)
	return system, onnxruntime, err
}

// emptySystem returns the options of apt-get for a system of an architecture without any package.
func emptySystem(dir string, release map[string]string, arch string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create directory: %w", err)
	}
	status := filepath.Join(dir, "status")
	if err := WriteFile(status, nil, 0o644); err != nil {
		return nil, err
	}
	options := []string{
		"-o", "Dir::State::status=" + status, "-o", "APT::Architecture=" + arch, "-o", "APT::Architectures=" + arch, "-o", "Debug::NoLocking=1",
	}
	if sources := foreignSources(release, runtime.GOARCH, arch); sources != "" {
		list := filepath.Join(dir, "sources.list")
		if err := WriteFile(list, []byte(sources), 0o644); err != nil {
			return nil, err
		}
		options = append(options, "-o", "Dir::Etc::SourceList="+list, "-o", "Dir::Etc::SourceParts=-")
	}
	return options, nil
}

// Package is a package of the distribution.
type Package struct{ Name, Version, Arch string }

// packagesFile lists the archives of the packages in an entry of the cache.
const packagesFile = "packages.txt"

// Packages returns the packages that were unpacked into the directory of an entry of the cache.
func Packages(dir string) ([]Package, error) {
	content, err := os.ReadFile(filepath.Join(dir, packagesFile))
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	var packages []Package
	for archive := range strings.FieldsSeq(string(content)) {
		parts := strings.Split(strings.TrimSuffix(archive, ".deb"), "_")
		if len(parts) != 3 {
			return nil, fmt.Errorf("%s is not the name of a package's archive", archive)
		}
		version, err := url.PathUnescape(parts[1]) // %3a of an epoch
		if err != nil {
			return nil, fmt.Errorf("version of %s: %w", archive, err)
		}
		packages = append(packages, Package{Name: parts[0], Version: version, Arch: parts[2]})
	}
	return packages, nil
}
