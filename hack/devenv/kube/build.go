package kube

import (
	"context"
	"strings"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// version is the Kubernetes version that hack/kube/go.mod pins.
const version = "1.37.0"

// Programs are those of a control plane without nodes. The slowest build is
// first: the others share most of its packages.
var Programs = []devenv.Built{
	Program("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", "about 4 min on 2 cores"),
	Program("controllers", "./controllers", "about 20 s on 2 cores"),
	Program("etcd", "go.etcd.io/etcd/server/v3", "about 10 s on 2 cores"),
	kubectl,
}

var kubectl = Program("kubectl", "k8s.io/kubernetes/cmd/kubectl", "about 20 s on 2 cores")

// Program returns a Kubernetes program.
func Program(name, pkg, estimate string) devenv.Built {
	return devenv.Built{
		Name: name, Package: pkg, Module: "kube", Flags: buildFlags(), Key: "kube-" + version,
		Title: name + " (Kubernetes " + version + ")", Estimate: estimate,
	}
}

// Kubectl returns the path of kubectl and builds it if it is not cached.
func Kubectl(ctx context.Context, cache *devenv.Cache) (string, error) {
	binaries, err := devenv.EnsureBuilt(ctx, cache, []devenv.Built{kubectl})
	return binaries["kubectl"], err
}

// buildFlags sets the version as the Kubernetes build does; otherwise the API
// server reports v0.0.0.
func buildFlags() []string {
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
	return []string{devenv.Unoptimized, "-ldflags", strings.Join(ld, " ")}
}
