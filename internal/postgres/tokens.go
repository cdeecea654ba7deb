package postgres

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// touchTimeout limits recording that a token was used.
const touchTimeout = 5 * time.Second

// Install implements tenant.TokenStore.
func (d *DB) Install(ctx context.Context, id tenant.ID, user string, c tenant.Credential) error {
	err := d.inTx(ctx, func(_ pgx.Tx, q *db.Queries) error {
		userID, err := lockUser(ctx, q, id, user)
		if err != nil {
			return err
		}
		var password []byte
		if c.PasswordHash != (tenant.Hash{}) {
			password = c.PasswordHash[:]
		}
		installed, err := q.InstallToken(ctx, db.InstallTokenParams{
			TenantID: string(id), UserID: userID, Generation: c.Generation, Hash: c.TokenHash[:], Issuer: string(c.Issuer),
			PasswordHash: password,
		})
		if err == nil && installed == 0 {
			err = fault.New(fault.Conflict, "generation %d of the token of user %s is not above the newest", c.Generation, user)
		}
		if err != nil {
			return err
		}
		auditUser(ctx, q, string(id), userID, audit.TokenCreate, c.TokenHash.Fingerprint())
		if password == nil || c.Generation == 1 {
			return nil
		}
		// A new password ends the grants given under the old one; there are
		// none before the first.
		return q.NotifyUser(ctx, db.NotifyUserParams{TenantID: string(id), UserID: userID})
	})
	if err != nil {
		return fmt.Errorf("install token: %w", err)
	}
	return nil
}

// RevokeOlder implements tenant.TokenStore.
func (d *DB) RevokeOlder(ctx context.Context, id tenant.ID, user string, generation int64, overlap time.Duration) error {
	err := d.inTx(ctx, func(_ pgx.Tx, q *db.Queries) error {
		userID, err := lockUser(ctx, q, id, user)
		if err != nil {
			return err
		}
		return revoke(ctx, q, db.RevokeTokensParams{
			TenantID: string(id), UserID: userID, Below: generation, Overlap: interval(overlap),
		})
	})
	if err != nil {
		return fmt.Errorf("revoke tokens: %w", err)
	}
	return nil
}

// revoke ends tokens and notifies every replica.
func revoke(ctx context.Context, q *db.Queries, p db.RevokeTokensParams) error {
	hashes, err := q.RevokeTokens(ctx, p)
	if err != nil || len(hashes) == 0 {
		return err
	}
	auditUser(ctx, q, p.TenantID, p.UserID, audit.TokenRevoke, fingerprints(hashes)...)
	return notifyTokens(ctx, q, hashes)
}

// notifyTokens notifies every replica of tokens whose expiry changed.
func notifyTokens(ctx context.Context, q *db.Queries, hashes [][]byte) error {
	for _, hash := range hashes {
		if err := q.NotifyToken(ctx, hash); err != nil {
			return err
		}
	}
	return nil
}

func lockUser(ctx context.Context, q *db.Queries, id tenant.ID, user string) (int64, error) {
	userID, err := q.LockUserByName(ctx, db.LockUserByNameParams{TenantID: string(id), Name: user})
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, fault.New(fault.NotFound, "tenant %s has no user %s", id, user)
	}
	return userID, err
}

// Identify implements tenant.TokenStore.
func (d *DB) Identify(ctx context.Context, h tenant.Hash) (tenant.Identity, error) {
	asked := time.Now()
	row, err := db.New(d.pool).Identify(ctx, h[:])
	if errors.Is(err, pgx.ErrNoRows) || err == nil && subtle.ConstantTimeCompare(row.Hash, h[:]) != 1 {
		return tenant.Identity{}, fault.New(fault.Unauthorized, "the token is unknown or was revoked")
	}
	if err != nil {
		return tenant.Identity{}, fmt.Errorf("identify token: %w", mapError(err))
	}
	access, application := applicationOf(row)
	out := identityOf(row.Quota, row.UserPlacement, row.TenantName, row.UserName)
	out.Actor, out.Access, out.Application, out.Suspended = tenant.TokenActor(h), access, application, row.Suspended
	if row.Stale {
		// The response does not wait for it, and losing it is harmless.
		go d.touch(context.WithoutCancel(ctx), out.Scope, row)
	}
	if application != nil {
		out.Actor = tenant.KeyActor(h, application.Name)
	}
	if row.ExpiresIn > 0 {
		// Relative to the local clock, which the caller uses too, not the
		// database's.
		out.ExpiresAt = asked.Add(time.Duration(row.ExpiresIn * float64(time.Second)))
	}
	return out, nil
}

// identityOf returns the identity of a user, to which the caller adds what depends on the credential.
func identityOf(q db.Quota, p db.UserPlacement, tenantName, userName string) tenant.Identity {
	return tenant.Identity{
		Scope:      tenant.Scope{Tenant: tenant.ID(p.TenantID), User: tenant.UserID(p.UserID)},
		TenantName: tenantName, UserName: userName,
		Quota: quotaOf(q), Placement: locationOf(p), Generation: placement.GenerationID(p.GenerationID),
	}
}

func locationOf(p db.UserPlacement) placement.Location {
	return placement.Location{Cell: p.Cell, Collection: p.Collection, Partition: p.Partition, Shared: p.Shared}
}

func (d *DB) touch(ctx context.Context, scope tenant.Scope, row db.IdentifyRow) {
	ctx, cancel := context.WithTimeout(ctx, touchTimeout)
	defer cancel()
	tenantID, userID := string(scope.Tenant), int64(scope.User)
	var err error
	if row.TokenID == "" {
		err = db.New(d.pool).TouchToken(ctx, db.TouchTokenParams{TenantID: tenantID, UserID: userID, Generation: row.Generation})
	} else {
		err = d.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
			return q.TouchUserToken(ctx, db.TouchUserTokenParams{TenantID: tenantID, UserID: userID, ID: row.TokenID})
		})
	}
	if err != nil {
		d.log.DebugContext(ctx, "note use of token", "error", err)
	}
}
