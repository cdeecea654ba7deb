package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/devenv/kube"
	"github.com/mnemo-dev/mnemo/hack/devenv/milvus"
	"github.com/mnemo-dev/mnemo/hack/sample"
)

// testPlatform returns a platform without processes.
func testPlatform(t *testing.T) *platform {
	t.Helper()
	p := newPlatform(options{root: t.TempDir(), dir: t.TempDir()})
	p.progress = nil
	p.kube = &kube.ControlPlane{Kubeconfig: "/a dir/config", Kubectl: "/bin/kubectl"}
	p.milvus = &milvus.Server{Addr: "127.0.0.1:1", User: "root", Password: "it's"}
	p.sample = sample.Tenant{
		Namespace: "default", Name: "acme",
		Users: []sample.User{{Name: "a", Token: "tok1", Password: "pw"}, {Name: "b", Token: "tok2", Password: "pw2"}},
	}
	if err := p.chooseAddresses(); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestEnvCanBeSourced(t *testing.T) {
	t.Parallel()
	p := testPlatform(t)
	path := filepath.Join(t.TempDir(), devenv.EnvFile)
	if err := p.writeEnv(path); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want 0600", info.Mode())
	}
	script := fmt.Sprintf(`. %s; echo "$MNEMO_TOKEN|$MNEMO_SIGN_IN|$MNEMO_PASSWORD|$MNEMO_TOKEN_2|$KUBECONFIG|$MILVUS_PASSWORD|$MNEMO_NAMESPACE"`, path)
	out, err := exec.CommandContext(t.Context(), "sh", "-c", script).Output()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("tok1|default/acme/a|pw|tok2|/a dir/config|it's|default\n", string(out)); diff != "" {
		t.Errorf("variables in a shell (-want +got):\n%s", diff)
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	p := testPlatform(t)
	var b strings.Builder
	p.printSummary(&b, 0, "http://link/#code")
	for _, want := range []string{p.product.url(), "tok1", "http://link/#code   in a browser", "as default/acme/a with password pw", "export KUBECONFIG=/a dir/config", "get tenants", "/api/memory", "query="} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the summary does not contain %q:\n%s", want, &b)
		}
	}
	if strings.Contains(b.String(), "%!") {
		t.Errorf("the summary has a format error:\n%s", &b)
	}
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := newPlatform(options{dir: t.TempDir(), port: l.Addr().(*net.TCPAddr).Port})
	err = p.chooseAddresses()
	if err == nil || !strings.Contains(err.Error(), "is in use by another program: stop that program or choose another") {
		t.Errorf("choose addresses: error %v, want one that says what to do", err)
	}
}

func TestResetKeepsUnknownFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"milvus", "precious"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := reset(t.Context(), options{dir: dir}); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 1 || files[0].Name() != "precious" {
		t.Errorf("files after reset: %v, want only precious", files)
	}
}
