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
	DropUser(scope tenant.Scope)
	// SetBypass turns remembering off while changes cannot be heard, and on
	// again; either way what was remembered is forgotten.
	SetBypass(on bool)
}

// Listen tells the cache of every change of tokens and tenants, on a
// connection of its own, until the context ends; then it returns nil. While
// there is no connection the cache is bypassed.
func (d *DB) Listen(ctx context.Context, cache Identities) error {
	cache.SetBypass(true)
	return d.listen(ctx, subscription{
		channel: "mnemo_identity",
		// Only from here on is every change heard: what is older goes.
		began: func() { cache.SetBypass(false) },
		ended: func() { cache.SetBypass(true) },
		heard: func(payload string) { forget(cache, payload) },
		lost:  "not hearing of revoked tokens: asking the database for each request",
	})
}

// ListenTenants calls changed for each tenant whose Tenant the operator is to
// look at before its time, until the context ends; then it returns nil. What is
// missed while there is no connection, the operator's resync finds.
func (d *DB) ListenTenants(ctx context.Context, changed func(tenant.ID)) error {
	return d.listen(ctx, subscription{
		channel: "mnemo_operator",
		began:   func() {},
		ended:   func() {},
		heard:   func(payload string) { changed(tenant.ID(payload)) },
		lost:    "not hearing of tenants that changed: they are looked at with the next resync",
	})
}

// subscription is what is listened to and what is done about it.
type subscription struct {
	channel      string
	began, ended func() // there is a connection, and there is none any more
	heard        func(payload string)
	lost         string // logged when the connection is lost
}

func (d *DB) listen(ctx context.Context, s subscription) error {
	away := false
	for ctx.Err() == nil {
		heard, err := d.listenOnce(ctx, s)
		s.ended()
		// Once for each time it is lost; an end that was asked for is none.
		if ctx.Err() == nil && (heard || !away) {
			d.log.WarnContext(ctx, "lost the connection that listens to the database", "consequence", s.lost, "error", err)
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
func (d *DB) listenOnce(ctx context.Context, s subscription) (heard bool, err error) {
	conn, err := pgx.ConnectConfig(ctx, d.pool.Config().ConnConfig)
	if err != nil {
		return false, fmt.Errorf("connect to listen: %w", err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), listenAnswer)
		defer cancel()
		_ = conn.Close(closing)
	}()
	if _, err := conn.Exec(ctx, "listen "+s.channel); err != nil {
		return false, fmt.Errorf("listen: %w", err)
	}
	s.began()
	return true, follow(ctx, conn, s.heard)
}

// follow passes notifications on until the connection is lost.
func follow(ctx context.Context, conn *pgx.Conn, heard func(payload string)) error {
	for {
		wait, cancel := context.WithTimeout(ctx, listenCheck)
		n, err := conn.WaitForNotification(wait)
		timedOut := wait.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case err == nil:
			heard(n.Payload)
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

// forget reads a payload of pg_notify (queries/users.sql, tenants.sql, oauth.sql).
func forget(cache Identities, payload string) {
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
