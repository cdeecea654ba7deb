package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/mnemo-dev/mnemo/hack/devenv/kube"
	"github.com/mnemo-dev/mnemo/hack/devenv/node"
	"github.com/mnemo-dev/mnemo/hack/sample"
)

// testCluster returns a cluster without processes.
func testCluster(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(options{root: "../..", dir: filepath.Join(t.TempDir(), "cluster"), tag: localTag})
	c.node = &node.Node{HostAddress: "198.18.0.1", Kube: &kube.ControlPlane{Kubeconfig: "/a dir/config", Kubectl: "/bin/kubectl"}}
	c.release.url, c.release.metrics = "http://198.18.8.7", "http://198.18.8.8:9090"
	c.sample = sample.Tenant{
		Namespace: "default", Name: "acme",
		Users: []sample.User{{Name: "a", Token: "tok1", Password: "pw"}, {Name: "b", Token: "tok2", Password: "pw2"}},
	}
	return c
}

func TestEnvCanBeSourced(t *testing.T) {
	t.Parallel()
	c := testCluster(t)
	if err := c.writeEnv(); err != nil {
		t.Fatal(err)
	}
	script := `. "$0"; echo "$MNEMO_URL|$MNEMO_TOKEN|$MNEMO_TOKEN_2|$MNEMO_METRICS_URL|$KUBECONFIG|$KUBECTL"`
	out, err := exec.CommandContext(t.Context(), "sh", "-c", script, c.envFile()).Output()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("http://198.18.8.7|tok1|tok2|http://198.18.8.8:9090/metrics|/a dir/config|/bin/kubectl\n", string(out)); diff != "" {
		t.Errorf("variables in a shell (-want +got):\n%s", diff)
	}
}

// TestAwaitAnswerAfterLostConnection: the first connection is never answered, like one to
// a Service before kube-proxy has its rules.
func TestAwaitAnswerAfterLostConnection(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 1 {
			<-r.Context().Done()
		}
	}))
	defer s.Close()
	if err := awaitAnswer(t.Context(), s.URL); err != nil {
		t.Error(err)
	}
	if got := requests.Load(); got != 2 {
		t.Errorf("attempts = %d, want 2", got)
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	c := testCluster(t)
	var b strings.Builder
	c.printSummary(&b, 0)
	for _, want := range []string{
		c.release.url + "   in a browser: sign in as default/acme/a with password pw", "tok1", "export KUBECONFIG=/a dir/config",
		c.envFile(), "/api/memory", "query=", "make cluster-down",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the summary does not contain %q:\n%s", want, &b)
		}
	}
	if strings.Contains(b.String(), "%!") {
		t.Errorf("the summary has a format error:\n%s", &b)
	}
}

// TestConstantsMatchFiles compares constants with the same names in YAML files.
func TestConstantsMatchFiles(t *testing.T) {
	t.Parallel()
	read := func(path string) map[string]any {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var values map[string]any
		if err := yaml.Unmarshal(data, &values); err != nil {
			t.Fatal(err)
		}
		return values
	}
	at := func(values map[string]any, keys ...string) any {
		var v any = values
		for _, k := range keys {
			m, _ := v.(map[string]any)
			v = m[k]
		}
		return v
	}
	c := testCluster(t)
	if got := at(read("../../charts/mnemo/values.yaml"), "image", "repository"); got != repository {
		t.Errorf("image.repository of the chart is %v, want %s", got, repository)
	}
	if got := at(read(c.file("values.yaml")), "embeddings", "local", "image", "reference"); got != modelImage {
		t.Errorf("the chart uses the model image %v, want %s", got, modelImage)
	}
	if got := at(read(c.file("metrics.yaml")), "metadata", "namespace"); got != namespace {
		t.Errorf("namespace of the metrics Service is %v, want %s", got, namespace)
	}
}

func TestOneClusterAtATime(t *testing.T) {
	t.Parallel()
	o := testCluster(t).options
	release, err := occupy(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := occupy(t.Context(), o); err == nil || !strings.Contains(err.Error(), "make cluster-down") {
		t.Errorf("second cluster: error %v, want one that says how to delete the first", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if err := clean(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(o.dir); !os.IsNotExist(err) {
		t.Errorf("directory after clean: %v, want that it does not exist", err)
	}
}
