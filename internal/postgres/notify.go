package postgres

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// listenRetry is how long to wait before listening again.
	listenRetry = 500 * time.Millisecond
	// listenCheck is how often a silent connection is asked whether it lives.
	listenCheck = 10 * time.Second
	// listenAnswer is how long it has to answer: a host that vanished says nothing.
	listenAnswer = 5 * time.Second
)

// Identities is what must forget what it remembers of identities when they
// change. apiserver.Cache is one.
type Identities interface {
	Drop(h tenant.Hash)
	DropTenant(id tenant.ID)
	// SetBypass turns remembering off while changes cannot be heard, and on
	// again; either way what was remembered is forgotten.
	SetBypass(on bool)
}

// Listen tells the cache of every change of tokens and tenants, on a
// connection of its own, until the context ends; then it returns nil. While
// there is no connection the cache is bypassed.
func (d *DB) Listen(ctx context.Context, cache Identities) error {
	cache.SetBypass(true)
	away := false
	for ctx.Err() == nil {
		heard, err := d.listenOnce(ctx, cache)
		cache.SetBypass(true)
		// Once for each time it is lost; an end that was asked for is none.
		if ctx.Err() == nil && (heard || !away) {
			d.log.WarnContext(ctx, "not hearing of revoked tokens: asking the database for each request", "error", err)
		}
		away = true
		select {
		case <-ctx.Done():
		case <-time.After(listenRetry):
		}
	}
	return nil
}

// listenOnce listens until the connection is lost; heard says that there was one.
func (d *DB) listenOnce(ctx context.Context, cache Identities) (heard bool, err error) {
	conn, err := pgx.ConnectConfig(ctx, d.pool.Config().ConnConfig)
	if err != nil {
		return false, fmt.Errorf("connect to listen: %w", err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), listenAnswer)
		defer cancel()
		_ = conn.Close(closing)
	}()
	if _, err := conn.Exec(ctx, "listen mnemo_identity"); err != nil {
		return false, fmt.Errorf("listen: %w", err)
	}
	// Only from here on is every change heard: what is older goes.
	cache.SetBypass(false)
	return true, follow(ctx, conn, cache)
}

// follow passes notifications on until the connection is lost.
func follow(ctx context.Context, conn *pgx.Conn, cache Identities) error {
	for {
		wait, cancel := context.WithTimeout(ctx, listenCheck)
		n, err := conn.WaitForNotification(wait)
		timedOut := wait.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case err == nil:
			forget(cache, n.Payload)
		case !timedOut:
			return fmt.Errorf("wait for notifications: %w", err)
		default:
			if err := alive(ctx, conn); err != nil {
				return err
			}
		}
	}
}

func alive(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, listenAnswer)
	defer cancel()
	if err := conn.Ping(ctx); err != nil {
		return fmt.Errorf("check the connection: %w", err)
	}
	return nil
}

// forget reads a payload of pg_notify (queries/users.sql, tenants.sql).
func forget(cache Identities, payload string) {
	kind, value, _ := strings.Cut(payload, ":")
	switch kind {
	case "tenant":
		cache.DropTenant(tenant.ID(value))
	case "token":
		if hash, err := hex.DecodeString(value); err == nil && len(hash) == len(tenant.Hash{}) {
			cache.Drop(tenant.Hash(hash))
		}
	}
}
