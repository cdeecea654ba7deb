package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// SchemaVersion returns the schema version that this binary was written for.
func SchemaVersion() int64 {
	files, err := fs.ReadDir(schemaFiles, "migrations")
	if err != nil || len(files) == 0 {
		panic("postgres: no migrations are embedded") // a broken build
	}
	number, _, _ := strings.Cut(files[len(files)-1].Name(), "_")
	version, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		panic("postgres: migration without a number: " + files[len(files)-1].Name())
	}
	return version
}

// readSchema returns the schema version of a database, 0 if it is empty. It rejects a schema of a version before
// 0.1.0: those have the numbers of ours or higher ones, so that neither a migration nor a comparison would notice,
// but not the table schema_files.
func readSchema(ctx context.Context, q querier) (version int64, err error) {
	var ours bool
	err = q.QueryRow(ctx, `select coalesce(max(version_id), 0), to_regclass('schema_files') is not null
		from goose_db_version where is_applied`).Scan(&version, &ours)
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "42P01" { // no such table
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read schema version: %w", mapError(err))
	}
	if version > 0 && !ours {
		return 0, fault.New(fault.Invalid, "a version of mnemo before 0.1.0 created the database (schema %d), which cannot be migrated: "+
			"export the data of the users with that version, and import it after you have created an empty database "+
			"(with `make up`, run `make reset`, which deletes the data)", version)
	}
	return version, nil
}

// checkSchema rejects a schema that is older than this binary, and a newer one
// that has dropped something this binary uses.
func (d *DB) checkSchema(ctx context.Context) error {
	version, err := readSchema(ctx, d.pool)
	if err != nil {
		return err
	}
	var oldest int64
	want := SchemaVersion()
	if version < want {
		return fault.New(fault.Invalid, "the database has schema %d, but this binary requires %d: run `mnemo migrate` first", version, want)
	}
	if version == want {
		applied, err := hasRepeatable(ctx, d.pool)
		if err != nil {
			return err
		}
		if !applied {
			return fault.New(fault.Invalid, "the database lacks functions of this binary: run `mnemo migrate` first")
		}
	}
	if err := d.pool.QueryRow(ctx, "select version from schema_oldest").Scan(&oldest); err != nil {
		return fmt.Errorf("read the oldest schema that may be known: %w", mapError(err))
	}
	if oldest > want {
		return fault.New(fault.Invalid, "the database requires a binary with schema %d or newer, but this one has %d: run a newer mnemo", oldest, want)
	}
	if d.cell, err = readDatabaseCell(ctx, d.pool); err != nil {
		return err
	}
	return d.checkRowSecurity(ctx)
}

// checkRowSecurity rejects a role that bypasses row-level security, such as the
// owner: its queries would return the rows of every tenant.
func (d *DB) checkRowSecurity(ctx context.Context) error {
	var held bool
	if err := d.pool.QueryRow(ctx, "select row_security_active('memories')").Scan(&held); err != nil {
		return fmt.Errorf("check the database role: %w", mapError(err))
	}
	if !held {
		return fault.New(fault.Invalid, "the role of DATABASE_URL bypasses row-level security: use the application role that `mnemo migrate` grants access to, not the owner")
	}
	return nil
}

// SchemaSum returns a short hexadecimal checksum of the files that Migrate applies. Tests name their template
// database after it.
func SchemaSum() string {
	sum := sha256.New()
	err := fs.WalkDir(schemaFiles, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := schemaFiles.ReadFile(path)
		sum.Write(content)
		return err //nolint:wrapcheck // unreachable: the files are embedded
	})
	if err != nil {
		panic("postgres: the embedded files of the schema cannot be read")
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}
