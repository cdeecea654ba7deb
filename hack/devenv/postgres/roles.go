package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Error codes of PostgreSQL for objects that already exist.
const (
	duplicateDatabase = "42P04"
	duplicateRole     = "42710"
)

// EnsureRole creates an unprivileged role that can log in, if it does not exist,
// and sets its password.
func (p *Server) EnsureRole(ctx context.Context, name, password string) error {
	role := pgx.Identifier{name}.Sanitize()
	if err := p.exec(ctx, "CREATE ROLE "+role, duplicateRole); err != nil {
		return fmt.Errorf("create role %s: %w", name, err)
	}
	// The password contains only letters and digits: see Settings.EnsurePassword.
	if err := p.exec(ctx, fmt.Sprintf("ALTER ROLE %s LOGIN PASSWORD '%s'", role, password), ""); err != nil {
		return fmt.Errorf("set password of role %s: %w", name, err)
	}
	return nil
}

// EnsureDatabase creates a database with the given owner if it does not exist.
func (p *Server) EnsureDatabase(ctx context.Context, name, owner string) error {
	sql := fmt.Sprintf("CREATE DATABASE %s OWNER %s", pgx.Identifier{name}.Sanitize(), pgx.Identifier{owner}.Sanitize())
	if err := p.exec(ctx, sql, duplicateDatabase); err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	return nil
}

// URLFor returns the URL of a database for a role.
func (p *Server) URLFor(database, role, password string) (string, error) {
	u, err := url.Parse(p.URL)
	if err != nil {
		return "", fmt.Errorf("read PostgreSQL URL: %w", err)
	}
	u.User, u.Path = url.UserPassword(role, password), "/"+database
	return u.String(), nil
}

// exec runs a statement as the superuser and ignores an error with code accept.
func (p *Server) exec(ctx context.Context, sql, accept string) error {
	conn, err := pgx.Connect(ctx, p.URL)
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, sql)
	if known, ok := errors.AsType[*pgconn.PgError](err); ok && known.Code == accept {
		return nil
	}
	return err
}
