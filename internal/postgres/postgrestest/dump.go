package postgrestest

import (
	"crypto/rand"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// Dump writes a backup of the database with pg_dump and returns its path.
func Dump(t testing.TB, d Database) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "mnemo.dump")
	client(t, "pg_dump", "--format=custom", "--file="+file, d.OwnerURL)
	return file
}

// Restore restores a backup with pg_restore into a new database, which is
// dropped when the test ends.
func Restore(t testing.TB, file string) Database {
	t.Helper()
	base, name := testkit.Postgres(t), "mnemo_test_"+strings.ToLower(rand.Text())
	if err := run(base, fmt.Sprintf("create database %s owner %s", name, owner)); err != nil {
		t.Fatalf("create database: %v", err)
	}
	dropAtEnd(t, base, name)
	d := Database{OwnerURL: at(base, owner, name), AppURL: at(base, app, name)}
	client(t, "pg_restore", "--no-owner", "--exit-on-error", "--jobs=2", "--dbname="+d.OwnerURL, file)
	return d
}

func client(t testing.TB, program string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(testkit.PostgresClients(t), program), args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", program, err, out)
	}
}
