package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// Server is a running PostgreSQL server.
type Server struct {
	// URL connects as the superuser "postgres" to the database "postgres".
	URL string

	process *devenv.Process
}

// Start starts PostgreSQL on 127.0.0.1 with a random superuser password and
// returns when the server answers queries.
func Start(ctx context.Context, o devenv.Options) (*Server, error) {
	binaries, err := Binaries(ctx, o.Cache)
	if err != nil {
		return nil, err
	}
	done := o.Cache.Progress.Step("PostgreSQL", "starting")
	p, err := startPostgres(ctx, o, binaries)
	done(err)
	if err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	return p, nil
}

func startPostgres(ctx context.Context, o devenv.Options, binaries string) (*Server, error) {
	dir := Dir(o.Dir)
	// An orphaned server holds the port and the data directory.
	if err := devenv.StopRecorded(ctx, o.Dir, "postgres", devenv.OrphanGrace); err != nil {
		return nil, err
	}
	if err := makePrivate(dir); err != nil {
		return nil, err
	}
	s, err := devenv.LoadSettings(dir)
	if err != nil {
		return nil, err
	}
	if err := s.ChoosePort("postgres", "PostgreSQL", o.Port); err != nil {
		return nil, err
	}
	password, port := s.EnsurePassword("postgres"), s.Ports["postgres"]
	if err := s.Save(dir); err != nil {
		return nil, err
	}
	if err := initPostgres(ctx, binaries, dir, password); err != nil {
		return nil, err
	}
	args := postgresArgs(filepath.Join(dir, "data"), port, o.Durable)
	if o.TLS != nil {
		if args, err = withTLS(args, dir, o.TLS); err != nil {
			return nil, err
		}
	}
	process, err := devenv.StartProcess(ctx, devenv.ProcessSpec{
		Name:    "postgres",
		Dir:     o.Dir,
		Path:    filepath.Join(binaries, "bin", "postgres"),
		Args:    args,
		Env:     o.Env,
		WorkDir: dir,
		User:    postgresUser(),
		Stop:    syscall.SIGINT, // "fast": ends sessions, writes a checkpoint
	})
	if err != nil {
		return nil, err
	}
	p := &Server{URL: postgresURL(password, port, o.TLS), process: process}
	if err := process.Await(ctx, time.Minute, p.ping); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// Addr returns host:port of the server.
func (p *Server) Addr() (string, error) {
	u, err := url.Parse(p.URL)
	if err != nil {
		return "", fmt.Errorf("read PostgreSQL URL: %w", err)
	}
	return u.Host, nil
}

// Stop shuts the server down.
func (p *Server) Stop() error { return p.process.StopWithin(30 * time.Second) }

// Kill kills the server, which simulates a crash. Its sessions end shortly after.
func (p *Server) Kill() error { return p.process.Kill() }

// PID returns the process id.
func (p *Server) PID() int { return p.process.PID() }

// Dir returns the data directory of the server of run directory dir. It is
// outside dir if root runs the server and other users cannot access dir.
func Dir(dir string) string {
	return accessiblePath(filepath.Join(dir, "postgres"), "lib")
}

// ping also checks for btree_gin: the full-text index needs it, and some builds
// of the server do not include it.
func (p *Server) ping(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, p.URL)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var found bool
	const query = `SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'btree_gin')`
	if err := conn.QueryRow(ctx, query).Scan(&found); err != nil {
		return err
	}
	if !found {
		return errors.New("this build of PostgreSQL does not include the extension btree_gin")
	}
	return nil
}

func postgresURL(password string, port int, authority *devenv.Authority) string {
	query := url.Values{"sslmode": {"disable"}}
	if authority != nil {
		query = url.Values{"sslmode": {"verify-full"}, "sslrootcert": {authority.File()}}
	}
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword("postgres", password),
		Host:     "127.0.0.1:" + strconv.Itoa(port),
		Path:     "/postgres",
		RawQuery: query.Encode(),
	}
	return u.String()
}

func postgresArgs(data string, port int, durable bool) []string {
	set := []string{
		"listen_addresses=127.0.0.1",
		"port=" + strconv.Itoa(port),
		"unix_socket_directories=", // none
		"max_connections=300",
		// Partitioned tables take many locks in one transaction.
		"max_locks_per_transaction=256",
		"shared_buffers=256MB",
		"password_encryption=scram-sha-256",
		"timezone=UTC",
	}
	if !durable {
		set = append(set, "fsync=off", "synchronous_commit=off", "full_page_writes=off")
	}
	args := []string{"-D", data}
	for _, s := range set {
		args = append(args, "-c", s)
	}
	return args
}

// initPostgres creates the database cluster if there is none. It uses a temporary
// name, because initdb leaves an incomplete cluster when it is killed.
func initPostgres(ctx context.Context, binaries, dir, password string) error {
	data, fresh := filepath.Join(dir, "data"), filepath.Join(dir, "data.partial")
	if devenv.IsDir(data) {
		return nil
	}
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("remove incomplete database: %w", err)
	}
	// A file, because initdb runs as another user, who cannot open our pipe.
	secret := filepath.Join(dir, "initial-password")
	if err := writePrivate(secret, password+"\n"); err != nil {
		return err
	}
	defer func() { _ = os.Remove(secret) }()
	cmd := exec.CommandContext(ctx, filepath.Join(binaries, "bin", "initdb"),
		"--pgdata", fresh, "--username", "postgres", "--auth", "scram-sha-256", "--pwfile", secret,
		"--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync")
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: postgresUser()}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	if err := os.Rename(fresh, data); err != nil {
		return fmt.Errorf("finish the new database: %w", err)
	}
	return nil
}

// Done is closed when the server has ended; Err returns the reason.
func (p *Server) Done() <-chan struct{} { return p.process.Done() }

// Err returns the reason why the server ended.
func (p *Server) Err() error { return p.process.Err() }
