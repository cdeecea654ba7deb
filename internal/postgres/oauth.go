package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/oauth"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

var (
	_ oauth.ClientStore = (*DB)(nil)
	_ oauth.GrantStore  = (*DB)(nil)
	_ oauth.AccessStore = (*DB)(nil)
)

const (
	// unusedClients is the maximum number of clients that no user has
	// authorized; a new one replaces the oldest.
	unusedClients = 10000
	// addressClients is the maximum number of registrations per address in
	// attemptSpan.
	addressClients = 30
)

// CreateClient implements oauth.ClientStore.
func (d *DB) CreateClient(ctx context.Context, c oauth.Client, address string) error {
	if err := d.countAttempt(ctx, attemptKey("registration", address), addressClients); err != nil {
		if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind == fault.RateLimited {
			return oauth.TooManyRegistrations(f.RetryAfter)
		}
		return err
	}
	err := d.inTx(ctx, func(_ pgx.Tx, q *db.Queries) error {
		if err := q.InsertClient(ctx, db.InsertClientParams{ID: c.ID, Name: c.Name, RedirectUris: c.RedirectURIs}); err != nil {
			return err
		}
		return q.ExpireClients(ctx, unusedClients)
	})
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	return nil
}

// Client implements oauth.ClientStore.
func (d *DB) Client(ctx context.Context, id string) (oauth.Client, error) {
	row, err := db.New(d.pool).GetClient(ctx, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return oauth.Client{}, fault.New(fault.NotFound, "no client has this client_id")
	}
	if err != nil {
		return oauth.Client{}, fmt.Errorf("read client: %w", mapError(err))
	}
	return oauth.Client{ID: row.ID, Name: row.Name, RedirectURIs: row.RedirectUris, CreatedAt: row.CreatedAt}, nil
}

// IdentifyHolder implements oauth.AccessStore.
func (d *DB) IdentifyHolder(ctx context.Context, kind tenant.TokenKind, h tenant.Hash) (tenant.Identity, error) {
	asked := time.Now()
	row, err := db.New(d.pool).IdentifyHolder(ctx, db.IdentifyHolderParams{Hash: h[:], Kind: string(kind)})
	if errors.Is(err, pgx.ErrNoRows) {
		return tenant.Identity{}, fault.New(fault.Unauthorized, "the token is unknown, has expired or was revoked")
	}
	if err != nil {
		return tenant.Identity{}, fmt.Errorf("identify secret holder: %w", mapError(err))
	}
	out := identityOf(row.Quota, row.UserPlacement, row.TenantName, row.UserName)
	out.Actor, out.Access, out.Suspended = tenant.AppActor(h, row.App), tenant.AccessRead|tenant.AccessWrite, row.Suspended
	out.ExpiresAt = asked.Add(time.Duration(row.ExpiresIn * float64(time.Second)))
	return out, nil
}
