package cluster_test

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/devenv/postgres"
)

// database connects to the database of the release as the superuser.
func database(t *testing.T) *pgx.Conn {
	t.Helper()
	s, err := devenv.LoadSettings(postgres.Dir(cluster.dir))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), fmt.Sprintf("postgres://postgres:%s@127.0.0.1:%d/mnemo?sslmode=verify-full&sslrootcert=%s",
		s.Passwords["postgres"], s.Ports["postgres"], filepath.Join(cluster.dir, "authority", "ca.crt")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// execute runs a statement and returns the number of affected rows.
func execute(t *testing.T, conn *pgx.Conn, sql string, args ...any) int64 {
	t.Helper()
	tag, err := conn.Exec(t.Context(), sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return tag.RowsAffected()
}

// suspend stops all processes of a store with SIGSTOP, so that connections hang. resume,
// or the end of the test, continues them.
func suspend(t *testing.T, store string) (resume func()) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(cluster.dir, "pids", store+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var record struct{ PID int }
	if err := json.Unmarshal(data, &record); err != nil || record.PID == 0 {
		t.Fatalf("read the process id of %s: %s: %v", store, data, err)
	}
	// The parent first, so that it cannot start more.
	stopped := []int{record.PID}
	if err := syscall.Kill(record.PID, syscall.SIGSTOP); err != nil {
		t.Fatalf("stop %s: %v", store, err)
	}
	var once sync.Once
	resume = func() {
		once.Do(func() {
			for _, pid := range stopped {
				_ = syscall.Kill(pid, syscall.SIGCONT)
			}
		})
	}
	t.Cleanup(resume)
	for _, pid := range childrenOf(t, record.PID) {
		stopped = append(stopped, pid)
		_ = syscall.Kill(pid, syscall.SIGSTOP) // it may have exited since
	}
	return resume
}

func childrenOf(t *testing.T, parent int) (children []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range stats {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // it has exited
		}
		_, after, _ := strings.Cut(string(data), ") ") // the name may contain any character
		fields := strings.Fields(after)
		if len(fields) < 2 || fields[1] != strconv.Itoa(parent) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		children = append(children, pid)
	}
	return children
}

// replaceServerCertificate gives PostgreSQL a certificate with the given validity and
// terminates all connections of the application.
func replaceServerCertificate(t *testing.T, db *pgx.Conn, validity time.Duration) {
	t.Helper()
	block := func(file string) []byte {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := pem.Decode(data)
		if b == nil {
			t.Fatalf("%s is not PEM", file)
		}
		return b.Bytes
	}
	key, err := x509.ParseECPrivateKey(block(filepath.Join(cluster.dir, "authority", "ca.key")))
	if err != nil {
		t.Fatal(err)
	}
	ca, err := x509.ParseCertificate(block(filepath.Join(cluster.dir, "authority", "ca.crt")))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(postgres.Dir(cluster.dir), "server.crt")
	server, err := x509.ParseCertificate(block(file))
	if err != nil {
		t.Fatal(err)
	}
	server.SerialNumber, server.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(validity)
	der, err := x509.CreateCertificate(rand.Reader, server, ca, server.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	execute(t, db, "select pg_reload_conf()")
	execute(t, db, "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'mnemo_app'")
}
