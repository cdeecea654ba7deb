package testkit

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// MilvusAddr is the address of the test Milvus with credentials.
type MilvusAddr struct {
	// Addr is host:port of the gRPC API.
	Addr string
	// User and Password are the superuser's credentials.
	User, Password string
}

// Postgres returns the superuser URL of the test server. Tests share the server
// and make a database each.
func Postgres(tb testing.TB) string {
	tb.Helper()
	return need(tb, "MNEMO_TEST_POSTGRES")
}

// PostgresClients returns the directory with pg_dump and pg_restore.
func PostgresClients(tb testing.TB) string {
	tb.Helper()
	return need(tb, "MNEMO_TEST_POSTGRES_CLIENTS")
}

// Milvus returns the test server. Tests share it and make a collection each.
func Milvus(tb testing.TB) MilvusAddr {
	tb.Helper()
	return MilvusAddr{
		Addr:     need(tb, "MNEMO_TEST_MILVUS"),
		User:     need(tb, "MNEMO_TEST_MILVUS_USER"),
		Password: need(tb, "MNEMO_TEST_MILVUS_PASSWORD"),
	}
}

// ModelDir returns the directory with model.onnx and tokenizer.json of the default
// local model.
func ModelDir(tb testing.TB) string {
	tb.Helper()
	return need(tb, "MNEMO_TEST_MODEL")
}

// ModelDirs returns the directories of all local models by name.
func ModelDirs(tb testing.TB) map[string]string {
	tb.Helper()
	dirs := map[string]string{}
	for entry := range strings.SplitSeq(need(tb, "MNEMO_TEST_MODELS"), ",") {
		name, dir, _ := strings.Cut(entry, "=")
		dirs[name] = dir
	}
	return dirs
}

// ONNXRuntime returns the path of the shared library of onnxruntime.
func ONNXRuntime(tb testing.TB) string {
	tb.Helper()
	return need(tb, "MNEMO_TEST_ONNXRUNTIME")
}

// Chromium returns the path of the browser.
func Chromium(tb testing.TB) string {
	tb.Helper()
	return need(tb, "MNEMO_TEST_CHROMIUM")
}

// OIDCProvider returns the path of an identity provider. Its arguments are a port
// and redirect URIs.
func OIDCProvider(tb testing.TB) string {
	tb.Helper()
	return need(tb, "MNEMO_TEST_OIDC_PROVIDER")
}

// Program returns the path of mnemo, built from the checkout without debug information.
func Program(tb testing.TB) string {
	tb.Helper()
	return need(tb, "MNEMO_TEST_PROGRAM")
}

// Axe returns the path of axe-core, a script that reports accessibility problems
// of a page.
func Axe(tb testing.TB) string {
	tb.Helper()
	return need(tb, "MNEMO_TEST_AXE")
}

// KubeConfigFile returns the path of a kubeconfig for the test control plane's
// administrator.
func KubeConfigFile(tb testing.TB) string {
	tb.Helper()
	return need(tb, "MNEMO_TEST_KUBECONFIG")
}

// KubeConfig returns a client configuration for the test control plane's
// administrator. Tests share the control plane and make a namespace each.
func KubeConfig(tb testing.TB) *rest.Config {
	tb.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", KubeConfigFile(tb))
	if err != nil {
		tb.Fatalf("read kubeconfig: %v", err)
	}
	return config
}

// Kubectl returns the path of the kubectl program.
func Kubectl(tb testing.TB) string {
	tb.Helper()
	return need(tb, "MNEMO_TEST_KUBECTL")
}

// need returns an environment variable that hack/test sets.
func need(tb testing.TB, name string) string {
	tb.Helper()
	value := os.Getenv(name)
	if value == "" {
		tb.Fatalf("%s is not set: run `make test`, or `go run ./hack/test -- go test ./this/package`", name)
	}
	return value
}

// FreeAddress returns a local address on which nothing listens, for a program that
// needs one in its configuration. It returns none twice, and none that the kernel may choose
// for another connection before the program listens.
func FreeAddress(tb testing.TB) string {
	tb.Helper()
	port, err := devenv.FreePort()
	if err != nil {
		tb.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
