package devenv

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/milvus-io/milvus-sdk-go/v2/client"
)

func testOptions(t *testing.T) Options {
	t.Helper()
	cache, err := OpenCache(NewProgress(os.Stderr))
	if err != nil {
		t.Fatal(err)
	}
	return Options{Dir: t.TempDir(), Cache: cache}
}

func TestPostgresKeepsData(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.Durable = true
	p, err := StartPostgres(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	exec := func(sql string) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), p.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(`CREATE EXTENSION btree_gin; CREATE TABLE kept (id int)`)
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	url := p.URL
	if p, err = StartPostgres(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop() })
	if p.URL != url {
		t.Errorf("address or password changed between starts")
	}
	exec(`SELECT FROM kept`)
}

func TestMilvusComesBackAfterKill(t *testing.T) {
	t.Parallel()
	m, err := StartMilvus(t.Context(), testOptions(t))
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
		t.Error("something listens after the kill")
	}
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := create(); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("create the role again: %v, want that it is still there", err)
	}
}

func TestKubeCollectsGarbageAndKeepsData(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	k, err := StartKube(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Stop() })
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
	if k, err = StartKube(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	got := kubectl("get", "namespaces", "-o", "name")
	if !strings.Contains(got, "namespace/kept") || strings.Contains(got, "namespace/gone") {
		t.Errorf("namespaces after a restart:\n%s\nwant kept and not gone", got)
	}
}
