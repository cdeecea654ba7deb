package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// repeatableFile contains definitions of functions, views, policies or triggers, and can be applied again.
type repeatableFile struct {
	Path, SQL, Checksum string
}

// repeatableFiles returns the files in the order in which they are applied: functions, and then the triggers that
// call them.
func repeatableFiles(files fs.FS) (all []repeatableFile, err error) {
	err = fs.WalkDir(files, "repeatable", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, path)
		sum := sha256.Sum256(content)
		all = append(all, repeatableFile{path, string(content), hex.EncodeToString(sum[:])})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the repeatable files: %w", err)
	}
	return all, nil
}

// applyRepeatable applies the files that are not current in the database, each in one transaction: other transactions
// find either the old definitions or the new ones.
func applyRepeatable(ctx context.Context, pool *pgxpool.Pool, files fs.FS) error {
	all, err := repeatableFiles(files)
	if err != nil {
		return err
	}
	for _, file := range all {
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return applyFile(ctx, tx, file) })
		if err != nil {
			return fmt.Errorf("apply %s: %w", file.Path, mapError(err))
		}
	}
	return nil
}

func applyFile(ctx context.Context, tx pgx.Tx, file repeatableFile) error {
	var current bool
	err := tx.QueryRow(ctx, `select coalesce((select checksum = $2 from schema_files
		where path = $1 order by applied_at desc limit 1), false)`, file.Path, file.Checksum).Scan(&current)
	if err != nil || current {
		return err //nolint:wrapcheck // applyRepeatable wraps it
	}
	if _, err := tx.Exec(ctx, file.SQL); err != nil {
		return err //nolint:wrapcheck // applyRepeatable wraps it
	}
	_, err = tx.Exec(ctx, `insert into schema_files (path, checksum) values ($1, $2)
		on conflict (path, checksum) do update set applied_at = excluded.applied_at`, file.Path, file.Checksum)
	return err //nolint:wrapcheck // applyRepeatable wraps it
}

// hasRepeatable reports whether the files of this binary were ever applied to the database. The ones of a newer
// binary, which may have replaced them since, are compatible (migrations/README.md).
func hasRepeatable(ctx context.Context, q querier) (bool, error) {
	all, err := repeatableFiles(schemaFiles)
	if err != nil {
		return false, err
	}
	var paths, checksums []string
	for _, file := range all {
		paths, checksums = append(paths, file.Path), append(checksums, file.Checksum)
	}
	var applied int
	err = q.QueryRow(ctx, `select count(*) from unnest($1::text[], $2::text[]) f (path, checksum)
		join schema_files using (path, checksum)`, paths, checksums).Scan(&applied)
	if err != nil {
		return false, fmt.Errorf("read the applied functions: %w", mapError(err))
	}
	return applied == len(all), nil
}
