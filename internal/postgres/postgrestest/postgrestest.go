// Package postgrestest gives each test a separate database on the real
// server, cloned from one that is migrated once.
package postgrestest

import (
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"hash/crc32"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// Roles of the test server, made once; the app's is under row-level security.
const (
	owner    = "mnemo_test_owner"
	app      = "mnemo_test_app"
	password = "mnemo-test" // the server listens on loopback and is thrown away
)

// auditCheck makes every transaction of the application role fail that changes data without
// an audit record, so that all tests on a real database check it.
//
//go:embed audit_check.sql
var auditCheck string

// outgrown marks new tenants as if a user of each had outgrown exact scoring: tests of the index
// then need neither thousands of units nor a migration into it. See CreateOnDemand.
const outgrown = "alter table tenants alter column outgrown_at set default now()"

// Database is a test's own database.
type Database struct {
	OwnerURL string
	AppURL   string
}

// Generation is what tests open the database with.
var Generation = placement.Generation{Model: "test-model", Dimensions: 384}

// New returns a test's own migrated database, opened as the app's role.
func New(t testing.TB) *postgres.DB {
	t.Helper()
	return Open(t, Create(t))
}

// Open opens a database as the app's role until the test ends.
func Open(t testing.TB, d Database) *postgres.DB {
	t.Helper()
	return open(t, postgres.Config{URL: d.AppURL, MaxConns: 24, Generation: Generation, CountTokens: countWords})
}

// OpenUnindexed is Open for a process that places tenants in no index.
func OpenUnindexed(t testing.TB, d Database) *postgres.DB {
	t.Helper()
	return open(t, postgres.Config{URL: d.AppURL, MaxConns: 24, Generation: Generation, CountTokens: countWords, Unindexed: true})
}

func open(t testing.TB, c postgres.Config) *postgres.DB {
	t.Helper()
	c.Traced = true // tests of traces see the statements
	db, err := postgres.Open(t.Context(), c)
	if err != nil {
		t.Fatalf("open test database: %v", err)
	}
	t.Cleanup(db.Close)
	return db
}

// countWords is the tokenizer of tests.
func countWords(text string) int { return len(strings.Fields(text)) }

// Create makes a migrated database that is dropped when the test ends.
func Create(t testing.TB) Database {
	t.Helper()
	base := testkit.Postgres(t)
	template, err := migrated(base)
	if err != nil {
		t.Fatalf("prepare template database: %v", err)
	}
	return clone(t, base, template)
}

// CreateOnDemand is Create for tenants that enter the index as in production: when one of their users
// has outgrown exact scoring.
func CreateOnDemand(t testing.TB) Database {
	t.Helper()
	d := Create(t)
	if err := run(d.OwnerURL, "alter table tenants alter column outgrown_at drop default"); err != nil {
		t.Fatalf("restore default: %v", err)
	}
	return d
}

// CreateInCell is Create for a database with a number.
func CreateInCell(t testing.TB, cell tenant.DatabaseCell) Database {
	t.Helper()
	d := Create(t)
	if err := run(d.OwnerURL, "delete from database_cell"); err != nil {
		t.Fatalf("reset database cell: %v", err)
	}
	if _, err := postgres.Migrate(t.Context(), postgres.MigrateConfig{OwnerURL: d.OwnerURL, AppRole: app, Cell: &cell}); err != nil {
		t.Fatalf("set database cell: %v", err)
	}
	return d
}

// Copy makes a database that holds what d does now, as one restored from a
// backup would. Nothing may be connected to d.
func Copy(t testing.TB, d Database) Database {
	t.Helper()
	u, err := url.Parse(d.OwnerURL)
	if err != nil {
		t.Fatalf("read database URL: %v", err)
	}
	return clone(t, testkit.Postgres(t), strings.TrimPrefix(u.Path, "/"))
}

func clone(t testing.TB, base, template string) Database {
	t.Helper()
	name := "mnemo_test_" + strings.ToLower(rand.Text())
	if err := run(base, fmt.Sprintf("create database %s template %s owner %s strategy file_copy", name, template, owner)); err != nil {
		t.Fatalf("create test database: %v", err)
	}
	dropAtEnd(t, base, name)
	return Database{OwnerURL: at(base, owner, name), AppURL: at(base, app, name)}
}

// Checkpoint writes all changed pages of the test server to the disk.
func Checkpoint(t testing.TB) {
	t.Helper()
	if err := run(testkit.Postgres(t), "checkpoint"); err != nil {
		t.Fatalf("checkpoint: %v", err)
	}
}

func dropAtEnd(t testing.TB, base, name string) {
	t.Helper()
	t.Cleanup(func() {
		if err := run(base, "drop database if exists "+name+" with (force)"); err != nil {
			t.Errorf("drop test database: %v", err)
		}
	})
}

var (
	once     sync.Mutex
	prepared = map[string]string{}
)

// migrated returns the name of a migrated database to clone, named by the
// files of the schema, made once on the server whichever processes ask.
func migrated(base string) (string, error) {
	once.Lock()
	defer once.Unlock()
	if name := prepared[base]; name != "" {
		return name, nil
	}
	name := fmt.Sprintf("mnemo_template_%s_%08x", postgres.SchemaSum(), crc32.ChecksumIEEE([]byte(auditCheck+outgrown)))
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, base)
	if err != nil {
		return "", fmt.Errorf("connect to the test server: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, "select pg_advisory_lock(hashtext('mnemo.postgrestest'))"); err != nil {
		return "", err
	}
	for _, role := range []string{owner, app} {
		if err := ensureRole(ctx, conn, role); err != nil {
			return "", err
		}
	}
	var there bool
	if err := conn.QueryRow(ctx, "select exists (select from pg_database where datname = $1)", name).Scan(&there); err != nil {
		return "", err
	}
	if !there {
		if err := makeTemplate(ctx, conn, base, name); err != nil {
			return "", err
		}
	}
	prepared[base] = name
	return name, nil
}

func makeTemplate(ctx context.Context, conn *pgx.Conn, base, name string) error {
	// Under another name until it is whole: a crash leaves no half template.
	if _, err := conn.Exec(ctx, "drop database if exists "+name+"_new with (force)"); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "create database "+name+"_new owner "+owner); err != nil {
		return err
	}
	if _, err := postgres.Migrate(ctx, postgres.MigrateConfig{OwnerURL: at(base, owner, name+"_new"), AppRole: app}); err != nil {
		return err
	}
	if err := run(at(base, owner, name+"_new"), auditCheck); err != nil {
		return fmt.Errorf("create audit check: %w", err)
	}
	if err := run(at(base, owner, name+"_new"), outgrown); err != nil {
		return fmt.Errorf("mark new tenants as outgrown: %w", err)
	}
	_, err := conn.Exec(ctx, "alter database "+name+"_new rename to "+name)
	return err
}

func ensureRole(ctx context.Context, conn *pgx.Conn, role string) error {
	var there bool
	if err := conn.QueryRow(ctx, "select exists (select from pg_roles where rolname = $1)", role).Scan(&there); err != nil || there {
		return err
	}
	_, err := conn.Exec(ctx, fmt.Sprintf("create role %s login password '%s'", role, password))
	return err
}

// run runs a statement.
func run(base, sql string) error {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, base)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, sql)
	return err
}

// at returns the URL of a role in a database of the same server.
func at(base, role, database string) string {
	u, err := url.Parse(base)
	if err != nil {
		panic("postgrestest: the test server's URL cannot be read")
	}
	u.User = url.UserPassword(role, password)
	u.Path = "/" + database
	return u.String()
}
