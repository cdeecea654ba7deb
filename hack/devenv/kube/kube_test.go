package kube

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

func testOptions(t *testing.T) devenv.Options {
	t.Helper()
	cache, err := devenv.OpenCache(devenv.NewProgress(os.Stderr))
	if err != nil {
		t.Fatal(err)
	}
	return devenv.Options{Dir: t.TempDir(), Cache: cache}
}

func TestNamespaceDeletionAndRestart(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	k, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Stop() })
	if err := k.EnsureKubectl(t.Context()); err != nil {
		t.Fatal(err)
	}
	kubectl := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), k.Kubectl, append([]string{"--kubeconfig", k.Kubeconfig}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("kubectl %s: %v\n%s", args, err, out)
		}
		return string(out)
	}
	kubectl("create", "namespace", "kept")
	kubectl("create", "namespace", "gone")
	kubectl("delete", "namespace", "gone", "--timeout=60s")
	if err := k.Stop(); err != nil {
		t.Fatal(err)
	}
	if k, err = Start(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	got := kubectl("get", "namespaces", "-o", "name")
	if !strings.Contains(got, "namespace/kept") {
		t.Errorf("namespaces after a restart:\n%s\nwant kept to exist", got)
	}
	if strings.Contains(got, "namespace/gone") {
		t.Errorf("namespaces after a restart:\n%s\nwant gone to be deleted", got)
	}
}
