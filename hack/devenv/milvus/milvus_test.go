package milvus

import (
	"net"
	"os"
	"strings"
	"testing"

	"github.com/milvus-io/milvus-sdk-go/v2/client"

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

func TestDataSurvivesKill(t *testing.T) {
	t.Parallel()
	m, err := Start(t.Context(), testOptions(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Stop() })
	if err := m.list(t.Context(), "Milvus"); err == nil {
		t.Error("the initial password still works")
	}
	create := func() error {
		c, err := client.NewClient(t.Context(), client.Config{Address: m.Addr, Username: m.User, Password: m.Password})
		if err != nil {
			return err
		}
		defer c.Close()
		return c.CreateRole(t.Context(), "kept")
	}
	if err := create(); err != nil {
		t.Fatal(err)
	}
	if err := m.Kill(); err != nil {
		t.Fatal(err)
	}
	if conn, err := net.Dial("tcp", m.Addr); err == nil {
		conn.Close()
		t.Error("the address accepts connections after the kill")
	}
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := create(); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("create the role again: error %v, want that it already exists", err)
	}
}
