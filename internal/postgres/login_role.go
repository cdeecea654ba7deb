package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// duplicateRole is PostgreSQL's error code for a role that exists.
const duplicateRole = "42710"

// EnsureLoginRole creates an unprivileged role that can log in, if it does not exist, sets its password, and
// returns the URL of the database for it. The password must consist of letters and digits.
func EnsureLoginRole(ctx context.Context, ownerURL, name, password string) (string, error) {
	login, err := url.Parse(ownerURL)
	if err != nil {
		return "", errInvalidOwnerURL
	}
	login.User = url.UserPassword(name, password)
	conn, err := pgx.Connect(ctx, ownerURL)
	if err != nil {
		return "", fmt.Errorf("open database: %w", mapError(err))
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	role := pgx.Identifier{name}.Sanitize()
	_, err = conn.Exec(ctx, "create role "+role)
	if known, ok := errors.AsType[*pgconn.PgError](err); err != nil && (!ok || known.Code != duplicateRole) {
		return "", fmt.Errorf("create role %s: %w", name, err)
	}
	if _, err := conn.Exec(ctx, fmt.Sprintf("alter role %s login password '%s'", role, password)); err != nil {
		return "", fmt.Errorf("set password of role %s: %w", name, err)
	}
	return login.String(), nil
}
