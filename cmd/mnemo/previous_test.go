package main

import (
	"bytes"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/api/client"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// TestPreviousBinary: during an upgrade, and after a rollback, the previous release runs on the schema of this one.
func TestPreviousBinary(t *testing.T) {
	t.Parallel()
	previous := buildPrevious(t)
	d := emptyDatabase(t)
	if out, err := mnemoOf(t, previous, d, "migrate").CombinedOutput(); err != nil {
		t.Fatalf("migrate: %v\n%s", err, out)
	}
	if _, err := postgres.Migrate(t.Context(), postgres.MigrateConfig{OwnerURL: d.OwnerURL, AppRole: appRole(t, d)}); err != nil {
		t.Fatal(err)
	}
	e := openEnv(t, d)
	tn := e.apply(t, tenanttest.NewSpec())
	e.placement(t, tn.ID)
	token, err := tenant.NewToken(e.db.DatabaseCell(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	credential := tenant.Credential{Generation: 1, TokenHash: tenant.HashSecret(token), Issuer: tenant.IssuerOperator}
	if err := e.db.Install(t.Context(), tn.ID, tn.Users[0].Name, credential); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(servePrevious(t, previous, d), token)
	if err != nil {
		t.Fatal(err)
	}
	useMemories(t, c)
}

// useMemories stores, finds and deletes a memory.
func useMemories(t *testing.T, c *client.Client) {
	t.Helper()
	created, err := c.CreateMemory(t.Context(), nil, client.CreateMemoryRequest{Text: "2026-11-20 My sister Ana moved to Lisbon."})
	if err != nil {
		t.Fatal(err)
	}
	query := "Where does Ana live?"
	found, err := c.ListMemories(t.Context(), &client.ListMemoriesParams{Query: &query})
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Body.Memories) != 1 || found.Degraded() {
		t.Errorf("found %d memories, degraded: %t; want 1, not degraded", len(found.Body.Memories), found.Degraded())
	}
	if _, err := c.DeleteMemory(t.Context(), created.Body.MemoryID); err != nil {
		t.Error(err)
	}
}

// buildPrevious builds mnemo of the last release in the history or, before the first one, of the last commit that changed
// the initial schema.
func buildPrevious(t *testing.T) string {
	t.Helper()
	const schema = "internal/postgres/migrations/00001_schema.sql"
	revision, err := exec.CommandContext(t.Context(), "git", "describe", "--tags", "--abbrev=0", "--match=v*", "HEAD^").Output()
	if err != nil {
		revision = output(t, "git", "log", "--format=%H", "--max-count=1", "--", "../../"+schema)
	}
	dir, program := t.TempDir(), filepath.Join(t.TempDir(), "mnemo")
	archive := filepath.Join(dir, "source.tar")
	output(t, "git", "-C", "../..", "archive", "--output="+archive, strings.TrimSpace(string(revision)))
	output(t, "tar", "-x", "-f", archive, "-C", dir)
	output(t, "go", "build", "-C", dir, "-o", program, "./cmd/mnemo")
	return program
}

// output runs a command that must succeed.
func output(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, stderr.Bytes())
	}
	return out
}

func emptyDatabase(t *testing.T) postgrestest.Database {
	t.Helper()
	d := postgrestest.Create(t)
	owner, err := pgx.Connect(t.Context(), d.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = owner.Close(t.Context()) }()
	if _, err := owner.Exec(t.Context(), "drop schema public cascade; create schema public"); err != nil {
		t.Fatal(err)
	}
	return d
}

func appRole(t *testing.T, d postgrestest.Database) string {
	t.Helper()
	config, err := pgx.ParseConfig(d.AppURL)
	if err != nil {
		t.Fatal(err)
	}
	return config.User
}

// mnemoOf returns a command of another binary.
func mnemoOf(t *testing.T, program string, d postgrestest.Database, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+d.AppURL, "DATABASE_OWNER_URL="+d.OwnerURL, "DATABASE_APP_ROLE="+appRole(t, d),
		"MNEMO_MODEL_DIR="+testkit.ModelDir(t), "MNEMO_ONNXRUNTIME="+testkit.ONNXRuntime(t))
	return cmd
}

// servePrevious runs the server of another binary until the test ends, and returns its URL.
func servePrevious(t *testing.T, program string, d postgrestest.Database) string {
	t.Helper()
	cmd := mnemoOf(t, program, d, "serve", "--index=none", "--listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0")
	logs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	return "http://" + servedAddress(t, logs)
}
