package parts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// kubeVersion is the Kubernetes version that hack/kube/go.mod pins.
const kubeVersion = "1.37.0"

// kubePrograms are what is built, in the order that lets the long one start
// first.
var kubePrograms = []struct{ name, pkg, estimate string }{
	{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", "about 6 min on 2 cores"},
	{"kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager", "about 2 min on 2 cores"},
	{"kubectl", "k8s.io/kubernetes/cmd/kubectl", "about 30 s on 2 cores"},
	{"etcd", "go.etcd.io/etcd/server/v3", "about 10 s on 2 cores"},
}

// kubeBinaries returns the path of each control plane program, built from
// source the first time.
func kubeBinaries(ctx context.Context, cache *Cache) (map[string]string, error) {
	module, err := kubeModule()
	if err != nil {
		return nil, err
	}
	key, err := kubeKey(module)
	if err != nil {
		return nil, err
	}
	binaries := map[string]string{}
	for _, p := range kubePrograms {
		dir, err := cache.Ensure(ctx, Entry{
			Key:   "kube-" + key + "-" + p.name,
			Title: p.name + " (Kubernetes " + kubeVersion + ")",
			Doing: "building from source, " + p.estimate + ", once",
			// Most of it is Go's build cache.
			Space: 4 << 30,
			Fill: func(ctx context.Context, dir string) error {
				log := filepath.Join(cache.Root, "build-"+p.name+".log")
				return goBuild(ctx, module, p.pkg, filepath.Join(dir, p.name), log)
			},
		})
		if err != nil {
			return nil, err
		}
		binaries[p.name] = filepath.Join(dir, p.name)
	}
	return binaries, nil
}

// Kubectl returns the path of the kubectl program, built the first time.
func Kubectl(ctx context.Context, cache *Cache) (string, error) {
	binaries, err := kubeBinaries(ctx, cache)
	return binaries["kubectl"], err
}

// RepoRoot returns the top of the checkout that holds the working directory.
func RepoRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("working directory: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "hack", "kube", "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not inside a checkout of Mnemo: change to one", start)
		}
	}
}

func kubeModule() (string, error) {
	root, err := RepoRoot()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, "hack", "kube"), nil
}

// kubeKey changes with whatever changes the programs.
func kubeKey(module string) (string, error) {
	h := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return "", fmt.Errorf("read hack/kube: %w", err)
		}
		h.Write(data)
	}
	_, _ = fmt.Fprint(h, kubeBuildEnv, kubeBuildFlags(), runtime.GOARCH)
	return kubeVersion + "-" + hex.EncodeToString(h.Sum(nil)[:6]), nil
}

// kubeBuildEnv overrides what the product is built with: an experiment of the
// product's would only make another copy of everything in Go's build cache.
var kubeBuildEnv = []string{"CGO_ENABLED=0", "GOEXPERIMENT=", "GOWORK=off"}

// kubeBuildFlags stamps the version as Kubernetes' own build does; without it
// the API server reports v0.0.0.
func kubeBuildFlags() []string {
	major, rest, _ := strings.Cut(kubeVersion, ".")
	minor, _, _ := strings.Cut(rest, ".")
	ld := []string{"-s", "-w"}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, set := range []string{
			"gitVersion=v" + kubeVersion, "gitMajor=" + major, "gitMinor=" + minor, "gitTreeState=clean",
			"gitCommit=modproxy", "buildDate=1970-01-01T00:00:00Z",
		} {
			ld = append(ld, "-X", pkg+"."+set)
		}
	}
	return []string{"-trimpath", "-ldflags", strings.Join(ld, " ")}
}

// goBuild builds one program of a module; its output goes to log.
func goBuild(ctx context.Context, module, pkg, output, log string) error {
	goTool, err := exec.LookPath("go")
	if err != nil {
		return errors.New("go is missing: install Go 1.26 or newer and put it in PATH")
	}
	f, err := os.Create(log)
	if err != nil {
		return fmt.Errorf("create build log: %w", err)
	}
	defer f.Close()
	args := append([]string{"build"}, kubeBuildFlags()...)
	cmd := exec.CommandContext(ctx, goTool, append(args, "-o", output, pkg)...)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), kubeBuildEnv...)
	cmd.Stdout, cmd.Stderr = f, f
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build (%w); the end of its log %s:\n%s", err, log, lastLines(log, 8))
	}
	return os.Remove(log)
}
