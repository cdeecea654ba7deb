package kube

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

func TestAssetsReplaceBuilds(t *testing.T) {
	dir := t.TempDir()
	for _, p := range Programs {
		if err := os.WriteFile(filepath.Join(dir, p.Name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(assetsVariable, dir)
	binaries, err := findBinaries(t.Context(), &devenv.Cache{Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range Programs {
		if want := filepath.Join(dir, p.Name); binaries[p.Name] != want {
			t.Errorf("path of %s is %q, want %q", p.Name, binaries[p.Name], want)
		}
	}
}

func TestImpersonate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := api.NewConfig()
	config.Clusters["c"] = &api.Cluster{Server: "https://cluster.example.com"}
	config.AuthInfos["admin"] = &api.AuthInfo{Token: "secret"}
	config.Contexts["x"] = &api.Context{Cluster: "c", AuthInfo: "admin"}
	config.CurrentContext = "x"
	admin, operator := filepath.Join(dir, "admin"), filepath.Join(dir, "operator")
	if err := clientcmd.WriteToFile(*config, admin); err != nil {
		t.Fatal(err)
	}
	if err := impersonate(admin, operator, "system:serviceaccount:ns:op"); err != nil {
		t.Fatal(err)
	}
	got, err := clientcmd.BuildConfigFromFlags("", operator)
	if err != nil {
		t.Fatal(err)
	}
	if got.Impersonate.UserName != "system:serviceaccount:ns:op" {
		t.Errorf("impersonates %q", got.Impersonate.UserName)
	}
	if got.Host != "https://cluster.example.com" {
		t.Errorf("server %q, want that of the original", got.Host)
	}
	if got.BearerToken != "secret" {
		t.Errorf("token %q, want that of the original", got.BearerToken)
	}
}
