package testkit

import (
	"os"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// MilvusAddr is where the test Milvus is and who may use it.
type MilvusAddr struct {
	// Addr is host:port of the gRPC API.
	Addr string
	// User and Password are those of the superuser.
	User, Password string
}

// Postgres returns the superuser URL of the test server. Tests share the server
// and make a database each.
func Postgres(t testing.TB) string {
	t.Helper()
	return need(t, "MNEMO_TEST_POSTGRES")
}

// Milvus returns the test server. Tests share it and make a collection each.
func Milvus(t testing.TB) MilvusAddr {
	t.Helper()
	return MilvusAddr{
		Addr:     need(t, "MNEMO_TEST_MILVUS"),
		User:     need(t, "MNEMO_TEST_MILVUS_USER"),
		Password: need(t, "MNEMO_TEST_MILVUS_PASSWORD"),
	}
}

// ModelDir returns the directory with model.safetensors, tokenizer.json and
// config.json of all-MiniLM-L6-v2.
func ModelDir(t testing.TB) string {
	t.Helper()
	return need(t, "MNEMO_TEST_MODEL")
}

// KubeConfigFile returns the path of a kubeconfig for the test control plane's
// administrator.
func KubeConfigFile(t testing.TB) string {
	t.Helper()
	return need(t, "MNEMO_TEST_KUBECONFIG")
}

// KubeConfig returns a client configuration for the test control plane's
// administrator. Tests share the control plane and make a namespace each.
func KubeConfig(t testing.TB) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", KubeConfigFile(t))
	if err != nil {
		t.Fatalf("read kubeconfig: %v", err)
	}
	return config
}

// Kubectl returns the path of the kubectl program.
func Kubectl(t testing.TB) string {
	t.Helper()
	return need(t, "MNEMO_TEST_KUBECTL")
}

// need returns an environment variable that hack/test sets.
func need(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set: run `make test`, or `go run ./hack/test -- go test ./this/package`", name)
	}
	return value
}
