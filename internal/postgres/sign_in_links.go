package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// CreateSignInLink stores a one-time sign-in link of a user. Forbidden if the user cannot
// sign in.
func (d *DB) CreateSignInLink(ctx context.Context, l tenant.SignInLink) error {
	err := d.inTx(ctx, func(_ pgx.Tx, q *db.Queries) error {
		n, err := q.InsertSignInLink(ctx, db.InsertSignInLinkParams{
			Hash: l.Secret[:], TenantID: string(l.Tenant), UserID: int64(l.User), Lifetime: interval(l.Lifetime),
		})
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.New(fault.Forbidden, "the user is inactive, or the tenant is suspended or retired")
		}
		appendAudit(ctx, q, l.Scope, audit.SessionLink, l.Secret.Fingerprint())
		return nil
	})
	if err != nil {
		return fmt.Errorf("create sign-in link: %w", err)
	}
	return nil
}

// SignInWithLink implements tenant.SessionStore. Its attempts have a counter of their own,
// so that wrong codes reject no password of the same address.
func (d *DB) SignInWithLink(ctx context.Context, s tenant.LinkSignIn) error {
	key := attemptKey("link", s.Address)
	if err := d.countAttempt(ctx, key, addressAttempts); err != nil {
		return err
	}
	if err := d.inTx(ctx, func(_ pgx.Tx, q *db.Queries) error { return useLink(ctx, q, s) }); err != nil {
		return fmt.Errorf("sign in: %w", err)
	}
	d.forgive(ctx, key, nil)
	return nil
}

// useLink replaces a link with a session. Of concurrent transactions, only one deletes the
// link.
func useLink(ctx context.Context, q *db.Queries, s tenant.LinkSignIn) error {
	if err := q.ExpireSessions(ctx); err != nil {
		return err
	}
	links, err := q.UseSignInLink(ctx, s.Link[:])
	if err != nil {
		return err
	}
	for _, l := range links {
		n, err := q.InsertLinkedSession(ctx, db.InsertLinkedSessionParams{
			Hash: s.Session[:], TenantID: l.TenantID, UserID: l.UserID, PasswordHash: l.PasswordHash, Lifetime: interval(s.Lifetime),
		})
		if err != nil {
			return err
		}
		if n > 0 {
			actor := tenant.SessionActor(s.Session)
			actor.Via = tenant.ViaLink
			auditUser(tenant.WithActor(ctx, actor), q, l.TenantID, l.UserID, audit.SessionCreate, actor.Fingerprint)
			return nil
		}
	}
	return tenant.ErrLinkUsed
}
