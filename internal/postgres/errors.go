package postgres

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// awayRetry is how long a caller is asked to wait when PostgreSQL is away.
const awayRetry = 2 * time.Second

// mapError gives errors that mean PostgreSQL is away the kind Unavailable and
// leaves the others as they are.
func mapError(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	if away(err) {
		return &fault.Error{Kind: fault.Unavailable, Message: "the database is away; try again", RetryAfter: awayRetry, Err: explain(err)}
	}
	return err
}

// explain says in the log what to do about a certificate.
func explain(err error) error {
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, renamed := errors.AsType[x509.HostnameError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	if unknown || renamed || invalid {
		return fmt.Errorf("its certificate cannot be trusted: check the host and sslrootcert in the database URL (postgres.host and postgres.ca of the chart): %w", err)
	}
	return err
}

func away(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch e.Code {
		case "53300", "57P01", "57P02", "57P03", "53100", "25006": // too many connections, shut down, starting, disk full, read only
			return true
		}
		return strings.HasPrefix(e.Code, "08")
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok { // timeouts too
		return true
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) { // killed in the middle of an answer
		return true
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, net.ErrClosed) || pgconn.SafeToRetry(err)
}

// parseID returns the canonical form of an id, and false for what cannot be
// one: ids are opaque, so such a one is simply not found.
func parseID(s string) (string, bool) {
	id, err := uuid.Parse(s)
	if err != nil || len(s) != 36 {
		return "", false
	}
	return id.String(), true
}

// parseIDs returns the canonical forms of those that can be ids, each once.
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

// newID returns an id that sorts by the time it was made.
func newID() (string, error) {
	id, err := uuid.NewV7()
	return id.String(), err
}
