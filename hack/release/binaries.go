package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/mnemo-dev/mnemo/hack/image"
)

// target is an operating system and an architecture, as in GOOS and GOARCH.
type target struct{ os, arch string }

// UnmarshalText parses a target of the form os/arch.
func (t *target) UnmarshalText(text []byte) error {
	os, arch, ok := strings.Cut(string(text), "/")
	if !ok {
		return fmt.Errorf("target %q: expected a form such as linux/amd64", text)
	}
	t.os, t.arch = os, arch
	return nil
}

// binary is a built program.
type binary struct {
	target

	path string
	info *debug.BuildInfo
}

// buildBinaries builds the program for each target, and writes an archive and an SBOM of each.
func (r *release) buildBinaries(ctx context.Context) ([]binary, error) {
	var binaries []binary
	for _, t := range r.Targets {
		b := binary{target: t, path: filepath.Join(r.work, t.os+"-"+t.arch, "mnemo")}
		source := image.Source{Root: r.Root, Version: r.Version, OS: t.os, Arch: t.arch}
		if err := source.Build(ctx, b.path); err != nil {
			return nil, err
		}
		if err := r.writeArchive(r.file(t, "tar.gz"), b); err != nil {
			return nil, err
		}
		var err error
		if b.info, err = buildinfo.ReadFile(b.path); err != nil {
			return nil, fmt.Errorf("read modules of the program: %w", err)
		}
		if err := writeSBOM(r.path(r.file(t, "cdx.json")), programBOM(r.Version, b.info)); err != nil {
			return nil, err
		}
		r.logf("built   %s", r.file(t, "tar.gz"))
		binaries = append(binaries, b)
	}
	return binaries, nil
}

// file returns the name of a file for one target.
func (r *release) file(t target, suffix string) string {
	return fmt.Sprintf("mnemo_%s_%s_%s.%s", r.Version, t.os, t.arch, suffix)
}

// writeArchive writes a tar archive with a program and its license. It contains no
// times, so that builds are reproducible.
func (r *release) writeArchive(name string, b binary) (err error) {
	file, err := os.Create(r.path(name))
	if err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	defer func() {
		if closeErr := file.Close(); err == nil {
			err = closeErr
		}
	}()
	compressed, err := gzip.NewWriterLevel(file, r.compression)
	if err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	archive := tar.NewWriter(compressed)
	for _, path := range []string{b.path, filepath.Join(r.Root, "LICENSE")} {
		if err := addFile(archive, path); err != nil {
			return fmt.Errorf("write archive %s: %w", name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("write archive %s: %w", name, err)
	}
	return compressed.Close()
}

func addFile(archive *tar.Writer, path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	mode := int64(0o644)
	if info.Mode()&0o111 != 0 {
		mode = 0o755
	}
	header := &tar.Header{Name: filepath.Base(path), Mode: mode, Size: int64(len(content)), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err = archive.Write(content)
	return err
}
