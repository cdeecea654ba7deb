package kube

import (
	"context"
	"strings"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// version is the Kubernetes version that hack/kube/go.mod pins.
const version = "1.37.0"

// Programs are those of a control plane, in the order that lets the long one
// start first.
var Programs = []devenv.Built{
	Program("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", "about 6 min on 2 cores"),
	Program("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager", "about 2 min on 2 cores"),
	Program("kubectl", "k8s.io/kubernetes/cmd/kubectl", "about 30 s on 2 cores"),
	Program("etcd", "go.etcd.io/etcd/server/v3", "about 10 s on 2 cores"),
}

func Program(name, pkg, estimate string) devenv.Built {
	return devenv.Built{
		Name: name, Package: pkg, Module: "kube", Flags: kubeBuildFlags(), Key: "kube-" + version,
		Title: name + " (Kubernetes " + version + ")", Estimate: estimate,
	}
}

// binaries returns the path of each control plane program, built from
// source the first time.
func binaries(ctx context.Context, cache *devenv.Cache) (map[string]string, error) {
	return devenv.EnsureBuilt(ctx, cache, Programs)
}

// Kubectl returns the path of the kubectl program, built the first time.
func Kubectl(ctx context.Context, cache *devenv.Cache) (string, error) {
	binaries, err := binaries(ctx, cache)
	return binaries["kubectl"], err
}

// kubeBuildFlags stamps the version as Kubernetes' own build does; without it
// the API server reports v0.0.0.
func kubeBuildFlags() []string {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	ld := []string{"-s", "-w"}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, set := range []string{
			"gitVersion=v" + version, "gitMajor=" + major, "gitMinor=" + minor, "gitTreeState=clean",
			"gitCommit=modproxy", "buildDate=1970-01-01T00:00:00Z",
		} {
			ld = append(ld, "-X", pkg+"."+set)
		}
	}
	return []string{"-ldflags", strings.Join(ld, " ")}
}
