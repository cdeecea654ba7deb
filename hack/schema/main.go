// Command schema writes internal/postgres/schema.sql: what `mnemo migrate` creates in an empty database, as PostgreSQL
// describes it. hack/generate.sh runs it with a PostgreSQL server for tests.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/postgres"
)

const file = "internal/postgres/schema.sql"

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "hack/schema:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	server, err := url.Parse(os.Getenv("MNEMO_TEST_POSTGRES"))
	if err != nil {
		return fmt.Errorf("read MNEMO_TEST_POSTGRES: %w", err)
	}
	conn, err := pgx.Connect(ctx, server.String())
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	name := "mnemo_schema_" + strings.ToLower(rand.Text())
	if _, err := conn.Exec(ctx, "create database "+name); err != nil {
		return fmt.Errorf("create a database: %w", err)
	}
	server.Path = "/" + name
	dump, err := dumpSchema(ctx, server.String())
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(format(dump)), 0o644); err != nil {
		return fmt.Errorf("write the schema: %w", err)
	}
	return nil
}

// dumpSchema migrates an empty database and returns what pg_dump prints, without the tables of goose and River and the
// partitions, which have the columns and indexes of their table.
func dumpSchema(ctx context.Context, database string) (string, error) {
	const role = "mnemo_schema_app"
	if _, err := postgres.EnsureLoginRole(ctx, database, role, rand.Text()); err != nil {
		return "", fmt.Errorf("create the application role: %w", err)
	}
	if _, err := postgres.Migrate(ctx, postgres.MigrateConfig{OwnerURL: database, AppRole: role}); err != nil {
		return "", err
	}
	program := filepath.Join(os.Getenv("MNEMO_TEST_POSTGRES_CLIENTS"), "pg_dump")
	cmd := exec.CommandContext(ctx, program, "--schema-only", "--no-owner", "--no-privileges",
		"--exclude-table=goose_*", "--exclude-table=river_*", "--exclude-table=units_[0-9]", database)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("run pg_dump: %w", err)
	}
	return string(out), nil
}
