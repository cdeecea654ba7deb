package postgres

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// attempts is the maximum number of attempts of a transaction that fails
// because of a concurrent one.
const attempts = 5

// connectTimeout is the default of connect_timeout in the URL. After a failover
// the name may still lead to a host that does not even reject connections.
const connectTimeout = 5 * time.Second

// acquireTimeout is how long a transaction waits for a connection of the pool. Under
// overload, requests are refused after this time instead of waiting for their deadline.
const acquireTimeout = 2 * time.Second

// allUsers is the value of mnemo.user in a transaction over all users of a
// tenant.
const allUsers = "*"

// Config configures the connection to PostgreSQL.
type Config struct {
	URL string // of the application role, which does not own the tables
	// DirectURL reaches PostgreSQL without a pooler, for LISTEN; URL if empty.
	DirectURL string
	MaxConns  int32 // maximum number of connections; 10 if 0
	// Generation is that of this process's embedder. It becomes the active one, in
	// which new tenants are placed, if the database has none.
	Generation placement.Generation
	// Unindexed places tenants in no index: searches score all units.
	Unindexed bool
	// RestoreID is changed by the administrator when the database was restored
	// without pg_restore, for example from a snapshot.
	RestoreID string
	Log       *slog.Logger // slog.Default() if nil
	// CountTokens counts the tokens of embedded texts, for metering; none are counted if nil.
	CountTokens func(text string) int
	// Certificate is called for every TLS connection; may be nil.
	Certificate func(tls.ConnectionState) error
	// Traced records a span for each statement of a sampled trace.
	Traced bool
}

// DB is the connection pool of the application role. It is safe for concurrent
// use.
type DB struct {
	config Config
	pool   *pgxpool.Pool
	direct *pgxpool.Pool         // not through a pooler; may be pool
	jobs   *river.Client[pgx.Tx] // inserts only
	log    *slog.Logger
	cell   tenant.DatabaseCell
}

// directConns is the maximum number of connections beside a pooler: those of the
// job queue.
const directConns = 4

// Open connects and checks that this binary supports the schema. Unavailable if
// PostgreSQL cannot be reached.
func Open(ctx context.Context, c Config) (*DB, error) {
	d := &DB{config: c, log: c.Log}
	if d.log == nil {
		d.log = slog.Default()
	}
	var err error
	if d.pool, err = openPool(ctx, c, c.URL, cmp.Or(c.MaxConns, 10)); err != nil {
		return nil, err
	}
	d.direct = d.pool
	if c.DirectURL != "" {
		if d.direct, err = openPool(ctx, c, c.DirectURL, directConns); err != nil {
			d.pool.Close()
			return nil, err
		}
	}
	d.jobs, err = river.NewClient(riverpgxv5.New(d.pool), &river.Config{Logger: d.log, Middleware: []rivertype.Middleware{&traced{}}})
	if err != nil {
		d.Close()
		return nil, fmt.Errorf("prepare jobs: %w", err)
	}
	if err := d.checkSchema(ctx); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func openPool(ctx context.Context, c Config, url string, most int32) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the database URL is invalid: it must have the form postgres://user:password@host:port/database")
	}
	config.MaxConns = most
	config.MaxConnIdleTime = 5 * time.Minute
	config.ConnConfig.ConnectTimeout = cmp.Or(config.ConnConfig.ConnectTimeout, connectTimeout)
	if c.Traced { // Spans contain the statements but not their parameters.
		config.ConnConfig.Tracer = otelpgx.NewTracer(otelpgx.WithDisableConnectionDetailsInAttributes())
	}
	showCertificates(config.ConnConfig, c.Certificate)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", mapError(err))
	}
	return pool, nil
}

// showCertificates calls show for every TLS connection, in addition to the
// configured verification.
func showCertificates(c *pgx.ConnConfig, show func(tls.ConnectionState) error) {
	if show == nil {
		return
	}
	if c.TLSConfig != nil {
		c.TLSConfig.VerifyConnection = show
	}
	for _, f := range c.Fallbacks {
		if f.TLSConfig != nil {
			f.TLSConfig.VerifyConnection = show
		}
	}
}

// Close closes all connections after waiting for those in use.
func (d *DB) Close() {
	d.pool.Close()
	d.direct.Close() // closing a pool twice has no effect
}

// Ping checks that PostgreSQL responds; Unavailable if it does not.
func (d *DB) Ping(ctx context.Context) error {
	if err := d.pool.Ping(ctx); err != nil {
		return fmt.Errorf("ping database: %w", mapError(err))
	}
	return nil
}

// work is the body of a transaction. The transaction begins with the first statement that it sends.
type work func(tx pgx.Tx, q *db.Queries) error

// inScope runs a transaction that sees the rows of one user.
func (d *DB) inScope(ctx context.Context, scope tenant.Scope, do work) error {
	return d.enter(ctx, scope.Tenant, strconv.FormatInt(int64(scope.User), 10), do)
}

// inTenant runs a transaction that sees the rows of all users of a tenant.
func (d *DB) inTenant(ctx context.Context, id tenant.ID, do work) error {
	return d.enter(ctx, id, allUsers, do)
}

func (d *DB) enter(ctx context.Context, t tenant.ID, user string, do work) error {
	id, ok := parseID(string(t))
	if !ok {
		return unknownTenant(t)
	}
	return d.transact(ctx, do, id, user)
}

// inTx runs a transaction on the control tables; row-level security hides all
// user data from it.
func (d *DB) inTx(ctx context.Context, do work) error {
	return d.transact(ctx, do)
}

// errChanged means that a concurrent transaction changed what this one had read.
var errChanged = tenant.ErrConcurrentUpdates

// transact runs do in a transaction and repeats it after a serialization failure, a deadlock or errChanged: do must not
// keep state between calls. The scope is a tenant and a user, or nothing.
func (d *DB) transact(ctx context.Context, do work, scope ...any) error {
	var err error
	for range attempts {
		err = d.once(ctx, do, scope)
		if !lost(err) && !errors.Is(err, errChanged) {
			break
		}
	}
	return mapError(err)
}

func (d *DB) once(ctx context.Context, do work, scope []any) error {
	conn, err := d.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	tx := &transaction{conn: conn.Conn(), waiting: &pgx.Batch{}}
	tx.Queue("begin")
	if len(scope) > 0 {
		tx.Queue(enterWritableScope, scope...)
	}
	// No effect after a commit. If it fails, the pool closes the connection.
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if err := do(tx, db.New(tx)); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// acquire returns a connection of the pool.
func (d *DB) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, acquireTimeout)
	defer cancel()
	return d.pool.Acquire(ctx)
}

// lost reports whether a transaction failed only because of a concurrent one.
func lost(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == "40001" || e.Code == "40P01")
}

// limitLockWaits makes the statements of the transaction that wait longer for a lock fail.
func limitLockWaits(ctx context.Context, tx pgx.Tx, limit time.Duration) error {
	_, err := tx.Exec(ctx, fmt.Sprintf("set local lock_timeout = %d", limit.Milliseconds()))
	return err
}

// isLockTimeout reports whether a statement waited for a lock for too long.
func isLockTimeout(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "55P03"
}
