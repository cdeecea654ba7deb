package devenv

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// kubeVersion is the Kubernetes version that hack/kube/go.mod pins.
const kubeVersion = "1.37.0"

// kubePrograms are those of a control plane, in the order that lets the long one
// start first.
var kubePrograms = []built{
	kubeProgram("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", "about 6 min on 2 cores"),
	kubeProgram("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager", "about 2 min on 2 cores"),
	kubeProgram("kubectl", "k8s.io/kubernetes/cmd/kubectl", "about 30 s on 2 cores"),
	kubeProgram("etcd", "go.etcd.io/etcd/server/v3", "about 10 s on 2 cores"),
}

func kubeProgram(name, pkg, estimate string) built {
	return built{
		name: name, pkg: pkg, module: "kube", flags: kubeBuildFlags(), key: "kube-" + kubeVersion,
		title: name + " (Kubernetes " + kubeVersion + ")", estimate: estimate,
	}
}

// kubeBinaries returns the path of each control plane program, built from
// source the first time.
func kubeBinaries(ctx context.Context, cache *Cache) (map[string]string, error) {
	return ensureBuilt(ctx, cache, kubePrograms)
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
	return []string{"-ldflags", strings.Join(ld, " ")}
}
