package postgres

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

var _ tenant.SessionStore = (*DB)(nil)

const (
	// attemptSpan is the window in which failed sign-ins are counted.
	attemptSpan = 10 * time.Minute
	// accountAttempts is the maximum number of attempts on one account from one
	// address in a window. Generated passwords cannot be guessed; the limit protects
	// the database from the load. A limit per account alone would let anyone lock
	// its owner out.
	accountAttempts = 10
	// addressAttempts is the maximum per address, which many users may share.
	addressAttempts = 60
)

// SignIn implements tenant.SessionStore.
func (d *DB) SignIn(ctx context.Context, s tenant.SignIn) error {
	// The attempt is counted before the password is checked and reset
	// afterwards, so that concurrent attempts cannot exceed the limit.
	account := attemptKey("account", s.Name.String()+" from "+s.Address)
	if err := d.countAttempt(ctx, account, accountAttempts); err != nil {
		return err
	}
	if err := d.CountSignIn(ctx, s.Address); err != nil {
		return err
	}
	if err := d.inTx(ctx, func(_ pgx.Tx, q *db.Queries) error { return beginSession(ctx, q, s) }); err != nil {
		return fmt.Errorf("sign in: %w", err)
	}
	d.forgive(ctx, attemptKey("address", s.Address), db.New(d.pool).ForgetAttempts(ctx, account))
	return nil
}

// CountSignIn implements tenant.SessionStore.
func (d *DB) CountSignIn(ctx context.Context, address string) error {
	return d.countAttempt(ctx, attemptKey("address", address), addressAttempts)
}

// forgive removes the counted attempt of a key and logs errors, including err of the
// preceding step.
func (d *DB) forgive(ctx context.Context, key []byte, err error) {
	if err := errors.Join(err, db.New(d.pool).ForgiveAttempt(ctx, key)); err != nil {
		d.log.DebugContext(ctx, "forgive sign-in attempts", "error", err)
	}
}

// attemptKey returns a hash of the account or address, so that neither is
// stored.
func attemptKey(kind, name string) []byte {
	sum := sha256.Sum256([]byte(kind + ":" + name))
	return sum[:]
}

// countAttempt counts an attempt; RateLimited above the maximum.
func (d *DB) countAttempt(ctx context.Context, key []byte, most int64) error {
	q := db.New(d.pool)
	row, err := q.CountAttempt(ctx, db.CountAttemptParams{Key: key, Span: interval(attemptSpan)})
	if err == nil && row.Attempts == 1 {
		err = q.ExpireAttempts(ctx, interval(attemptSpan))
	}
	if err != nil {
		return fmt.Errorf("count sign-in attempt: %w", mapError(err))
	}
	if row.Attempts <= most {
		return nil
	}
	wait := max(attemptSpan-time.Duration(row.Age*float64(time.Second)), time.Second)
	return tenant.TooManySignIns(wait)
}

func beginSession(ctx context.Context, q *db.Queries, s tenant.SignIn) error {
	if err := q.ExpireSessions(ctx); err != nil {
		return err
	}
	accounts, err := q.FindAccounts(ctx, db.FindAccountsParams{
		Namespace: s.Name.Namespace, TenantName: s.Name.Tenant, UserName: s.Name.User,
	})
	if err != nil {
		return err
	}
	for _, a := range accounts {
		if subtle.ConstantTimeCompare(a.PasswordHash, s.Password[:]) != 1 {
			continue
		}
		if a.Suspended {
			return tenant.ErrSuspended
		}
		n, err := q.InsertSession(ctx, db.InsertSessionParams{
			Hash: s.Session[:], TenantID: a.TenantID, UserID: a.ID, PasswordHash: s.Password[:], Lifetime: interval(s.Lifetime),
		})
		if err != nil {
			return err
		}
		if n > 0 {
			actor := tenant.SessionActor(s.Session)
			actor.Via = tenant.ViaPassword
			auditUser(tenant.WithActor(ctx, actor), q, a.TenantID, a.ID, audit.SessionCreate, actor.Fingerprint)
			return nil
		}
	}
	return tenant.ErrIncorrectPassword
}

// Session implements tenant.SessionStore.
func (d *DB) Session(ctx context.Context, h tenant.Hash) (tenant.Session, error) {
	row, err := db.New(d.pool).GetSession(ctx, h[:])
	if errors.Is(err, pgx.ErrNoRows) || err == nil && subtle.ConstantTimeCompare(row.Hash, h[:]) != 1 {
		return tenant.Session{}, tenant.ErrSessionEnded
	}
	if err != nil {
		return tenant.Session{}, fmt.Errorf("read session: %w", mapError(err))
	}
	who := identityOf(row.Quota, row.UserPlacement, row.TenantName, row.UserName)
	who.Actor, who.Access = tenant.SessionActor(h), tenant.FullAccess
	return tenant.Session{
		Namespace: row.Namespace, DisplayName: row.DisplayName, Email: row.Email, Issuer: row.Issuer,
		Administrator: row.Administrator, AuthenticatedAt: orZero(row.AuthenticatedAt), Identity: who,
	}, nil
}

// EndSession implements tenant.SessionStore.
func (d *DB) EndSession(ctx context.Context, h tenant.Hash) error {
	ctx = tenant.WithActor(ctx, tenant.SessionActor(h))
	err := d.inTx(ctx, func(_ pgx.Tx, q *db.Queries) error {
		ended, err := q.DeleteSession(ctx, h[:])
		if err != nil {
			return err
		}
		for _, s := range ended {
			auditUser(ctx, q, s.TenantID, s.UserID, audit.SessionDelete, h.Fingerprint())
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("end session: %w", err)
	}
	return nil
}

// endAccess ends the sessions, grants and created tokens of all users of a tenant. It widens
// the transaction's scope to the whole tenant.
func endAccess(ctx context.Context, q *db.Queries, id string) error {
	if err := q.DeleteTenantSessions(ctx, id); err != nil {
		return err
	}
	if err := q.SetScope(ctx, db.SetScopeParams{Tenant: id, UserID: allUsers}); err != nil {
		return err
	}
	return endDelegated(ctx, q, id, 0)
}
