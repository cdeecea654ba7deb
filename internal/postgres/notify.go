package postgres

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// listenRetry is the delay before reconnecting.
	listenRetry = 500 * time.Millisecond
	// listenCheck is the interval at which an idle connection is checked.
	listenCheck = 10 * time.Second
	// listenTimeout limits the check: a host that vanished sends no error.
	listenTimeout = 5 * time.Second
)

// Identities is a cache of identities that must drop changed ones, such as
// apiserver.Cache.
type Identities interface {
	Drop(h tenant.Hash)
	DropTenant(id tenant.ID)
	DropUser(scope tenant.Scope)
	// SetBypass disables the cache while notifications cannot be received. Both
	// calls clear it.
	SetBypass(on bool)
}

// Listen notifies the cache of every change of tokens and tenants, on a
// separate connection, until the context ends; then it returns nil. The cache
// is bypassed while there is no connection.
func (d *DB) Listen(ctx context.Context, cache Identities) error {
	cache.SetBypass(true)
	return d.listen(ctx, subscription{
		channel: "mnemo_identity",
		// Notifications are complete from now on; the cache drops older
		// entries.
		began:  func() { cache.SetBypass(false) },
		ended:  func() { cache.SetBypass(true) },
		notify: func(payload string) { dropCached(cache, payload) },
		lost:   "revocations cannot be received: every request queries the database",
	})
}

// ListenTenants calls changed for each tenant that the operator must reconcile
// at once, until the context ends; then it returns nil. It calls changed with an empty
// id when it is connected again, because notifications may have been missed.
func (d *DB) ListenTenants(ctx context.Context, changed func(tenant.ID)) error {
	return d.listen(ctx, subscription{
		channel: "mnemo_operator",
		began:   func() { changed("") },
		ended:   func() {},
		notify:  func(payload string) { changed(tenant.ID(payload)) },
		lost:    "tenants are reconciled when the connection is restored",
	})
}

// subscription is a channel and its callbacks.
type subscription struct {
	channel      string
	began, ended func() // connected and disconnected
	notify       func(payload string)
	lost         string // logged when the connection is lost
}

func (d *DB) listen(ctx context.Context, s subscription) error {
	logged := false
	for ctx.Err() == nil {
		connected, err := d.listenOnce(ctx, s)
		s.ended()
		// Logged once per lost connection, and not for a shutdown.
		if ctx.Err() == nil && (connected || !logged) {
			d.log.WarnContext(ctx, "notification connection lost", "consequence", s.lost, "error", err)
		}
		logged = true
		select {
		case <-ctx.Done():
		case <-time.After(listenRetry):
		}
	}
	return nil
}

// listenOnce listens until the connection is lost, and reports whether there
// was one.
func (d *DB) listenOnce(ctx context.Context, s subscription) (connected bool, err error) {
	conn, err := pgx.ConnectConfig(ctx, d.direct.Config().ConnConfig)
	if err != nil {
		return false, fmt.Errorf("connect to listen: %w", err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), listenTimeout)
		defer cancel()
		_ = conn.Close(closing)
	}()
	if _, err := conn.Exec(ctx, "listen "+s.channel); err != nil {
		return false, fmt.Errorf("listen: %w", err)
	}
	s.began()
	return true, follow(ctx, conn, s.notify)
}

// follow delivers notifications until the connection is lost.
func follow(ctx context.Context, conn *pgx.Conn, notify func(payload string)) error {
	for {
		wait, cancel := context.WithTimeout(ctx, listenCheck)
		n, err := conn.WaitForNotification(wait)
		timedOut := wait.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case err == nil:
			notify(n.Payload)
		case !timedOut:
			return fmt.Errorf("wait for notifications: %w", err)
		default:
			if err := ping(ctx, conn); err != nil {
				return err
			}
		}
	}
}

func ping(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	if err := conn.Ping(ctx); err != nil {
		return fmt.Errorf("check notification connection: %w", err)
	}
	return nil
}

// dropCached handles a payload of pg_notify (queries/access.sql, oauth.sql,
// placements.sql, tenants.sql, tokens.sql).
func dropCached(cache Identities, payload string) {
	kind, value, _ := strings.Cut(payload, ":")
	switch kind {
	case "tenant":
		cache.DropTenant(tenant.ID(value))
	case "user":
		id, user, _ := strings.Cut(value, ":")
		if n, err := strconv.ParseInt(user, 10, 64); err == nil {
			cache.DropUser(tenant.Scope{Tenant: tenant.ID(id), User: tenant.UserID(n)})
		}
	case "token":
		if hash, err := hex.DecodeString(value); err == nil && len(hash) == len(tenant.Hash{}) {
			cache.Drop(tenant.Hash(hash))
		}
	}
}
