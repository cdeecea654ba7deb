package milvus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// milvusReady limits the time of a start. After a kill the server answers queries
// only when the sessions of the killed process have expired, after about 63 s.
const milvusReady = 3 * time.Minute

// Server is a Milvus server, running or stopped. A stopped server can start again
// with the same data and address.
type Server struct {
	// Addr is host:port of its gRPC API.
	Addr string
	// User and Password are the superuser's credentials.
	User, Password string

	options devenv.Options
	files   string
	dir     string
	ports   map[string]int
	process *devenv.Process
	network *network // nil if namespaces are not permitted
}

// Start starts Milvus with authentication and a random password, and returns when
// the server answers queries.
func Start(ctx context.Context, o devenv.Options) (*Server, error) {
	files, err := Files(ctx, o.Cache)
	if err != nil {
		return nil, err
	}
	done := o.Cache.Progress.Step("Milvus", "starting")
	m, err := newMilvus(ctx, o, files)
	if err == nil {
		err = m.Start(ctx)
	}
	done(err)
	if err != nil {
		return nil, fmt.Errorf("start Milvus: %w", err)
	}
	return m, nil
}

// newMilvus prepares the data directory, ports and password.
func newMilvus(ctx context.Context, o devenv.Options, files string) (*Server, error) {
	// Two servers must never use the same data directory.
	if err := devenv.StopRecorded(ctx, o.Dir, "milvus", devenv.OrphanGrace); err != nil {
		return nil, err
	}
	m := &Server{User: "root", options: o, files: files, dir: filepath.Join(o.Dir, "milvus")}
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return nil, fmt.Errorf("create Milvus directory: %w", err)
	}
	s, err := devenv.LoadSettings(m.dir)
	if err != nil {
		return nil, err
	}
	for _, name := range milvusPorts {
		requested := 0
		if name == "proxy_port" {
			requested = o.Port
		}
		if err := s.ChoosePort(name, "Milvus", requested); err != nil {
			return nil, err
		}
	}
	m.ports = s.Ports
	m.Password = s.EnsurePassword(m.User)
	m.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(m.ports["proxy_port"]))
	return m, s.Save(m.dir)
}

// Start starts the server, also after Stop or Kill, and returns when it answers
// queries.
func (m *Server) Start(ctx context.Context) error {
	if err := writeMilvusConfig(m.files, m.dir, m.ports, m.options.TLS); err != nil {
		return err
	}
	if err := shareMilvusRuntime(); err != nil {
		return err
	}
	network, err := newNetwork()
	if err != nil {
		return err
	}
	spec := devenv.ProcessSpec{
		Name: "milvus",
		Dir:  m.options.Dir,
		Path: filepath.Join(m.files, "bin", "milvus"),
		// The alias is the name of the process file, which must be unique.
		Args:    []string{"run", "standalone", "-alias", "mnemo-" + strconv.Itoa(m.ports["proxy_port"])},
		Env:     milvusEnv(m.files, m.dir, m.ports),
		WorkDir: m.dir,
		Stop:    syscall.SIGTERM,
	}
	// Milvus listens on every address regardless of its configuration, and only
	// one of its ports requires a password.
	if m.network = network; network != nil {
		spec.Thread = network.thread
		if err := network.forward(m.Addr); err != nil {
			network.close()
			return err
		}
	} else {
		m.options.Cache.Progress.Printf("    Milvus: its internal ports are open to the network without a password; only root can isolate them")
	}
	if m.process, err = devenv.StartProcess(ctx, spec); err != nil {
		network.close()
		return err
	}
	if err := m.process.Await(ctx, milvusReady, m.ping); err != nil {
		return errors.Join(err, m.Stop())
	}
	return nil
}

// Open reports whether the server's internal ports, which require no password,
// are reachable from the network. Only root can isolate them.
func (m *Server) Open() bool { return m.network == nil }

// Stop shuts the server down.
func (m *Server) Stop() error {
	// After the server: the end of its thread would send it the death signal.
	defer m.network.close()
	return m.process.StopWithin(20 * time.Second)
}

// Kill kills the server, which simulates a crash.
func (m *Server) Kill() error {
	defer m.network.close()
	return m.process.Kill()
}

// PID returns the process id.
func (m *Server) PID() int { return m.process.PID() }

// ping lists the collections: the health endpoint succeeds long before the server
// answers queries. On a new server it replaces the default password.
func (m *Server) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := m.listening(); err != nil {
		return err
	}
	err := m.list(ctx, m.Password)
	if err == nil {
		return nil
	}
	const initial = "Milvus"
	if m.list(ctx, initial) != nil {
		return err
	}
	if err := m.setPassword(ctx, initial); err != nil {
		return err
	}
	return m.list(ctx, m.Password)
}

func (m *Server) list(ctx context.Context, password string) error {
	c, err := m.connect(ctx, password)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if _, err := c.ListCollections(ctx); err != nil {
		return fmt.Errorf("list collections: %w", err)
	}
	return nil
}

func (m *Server) connect(ctx context.Context, password string) (client.Client, error) {
	config := client.Config{Address: m.Addr, Username: m.User, Password: password}
	if m.options.TLS != nil {
		trust, err := m.options.TLS.Client()
		if err != nil {
			return nil, err
		}
		config.DialOptions = append(slices.Clone(client.DefaultGrpcOpts), grpc.WithTransportCredentials(credentials.NewTLS(trust)))
	}
	c, err := client.NewClient(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return c, nil
}

func (m *Server) setPassword(ctx context.Context, old string) error {
	c, err := m.connect(ctx, old)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if err := c.UpdateCredential(ctx, m.User, old, m.Password); err != nil {
		return fmt.Errorf("set password: %w", err)
	}
	return nil
}

// listening avoids the SDK's slow connection attempts while the server starts.
func (m *Server) listening() error {
	dial := net.Dial
	if m.network != nil {
		dial = func(_, addr string) (net.Conn, error) { return m.network.dial(addr) }
	}
	conn, err := dial("tcp", m.Addr)
	if err != nil {
		return fmt.Errorf("not listening yet: %w", err)
	}
	return conn.Close()
}

// Done is closed when the server has ended; Err returns the reason.
func (m *Server) Done() <-chan struct{} { return m.process.Done() }

// Err returns the reason why the server ended.
func (m *Server) Err() error { return m.process.Err() }
