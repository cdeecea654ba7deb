package postgres

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// retryDelay is the Retry-After of responses while PostgreSQL is unavailable.
const retryDelay = 2 * time.Second

// mapError maps errors that mean PostgreSQL is unavailable to the kind Unavailable and
// returns others unchanged.
func mapError(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	if refused := refusal(err); refused != nil {
		return refused
	}
	if isUnavailable(err) {
		return &fault.Error{Kind: fault.Unavailable, Message: tenant.DatabaseUnavailable, RetryAfter: retryDelay, Err: explain(err)}
	}
	return err
}

// explain adds a hint for certificate errors.
func explain(err error) error {
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, renamed := errors.AsType[x509.HostnameError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	if unknown || renamed || invalid {
		return fmt.Errorf("certificate not trusted: check the host and sslrootcert in the database URL (postgres.host and postgres.ca in the chart): %w", err)
	}
	return err
}

// isUnavailable reports whether err means that PostgreSQL cannot be reached or used.
func isUnavailable(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch e.Code {
		case "57P01", "57P02", "57P03", "25006": // shut down, crashed, starting, read only
			return true
		case "40001", "40P01": // every attempt of transact failed
			return true
		}
		switch e.Code[:min(2, len(e.Code))] {
		case "08", "53", "58": // connection, insufficient resources such as a full disk, I/O
			return true
		}
		return false
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok { // includes timeouts
		return true
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) { // connection closed during a response
		return true
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, net.ErrClosed) || pgconn.SafeToRetry(err)
}

// parseID returns the canonical form of an id, and false if it cannot be an id. Ids are
// opaque to callers, so an invalid one is treated as not found.
func parseID(s string) (string, bool) {
	id, err := uuid.Parse(s)
	if err != nil || len(s) != 36 {
		return "", false
	}
	return id.String(), true
}

// parseIDs returns the distinct canonical forms of the valid ids.
func parseIDs(ids []string) []string {
	out := make([]string, 0, len(ids))
	seen := make(map[string]bool, len(ids))
	for _, s := range ids {
		if id, ok := parseID(s); ok && !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}

// newID returns an id that sorts by creation time.
func newID() (string, error) {
	id, err := uuid.NewV7()
	return id.String(), err
}
