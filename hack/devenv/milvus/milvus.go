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

// milvusReady is how long a start may take: after a kill the server answers
// queries only when the sessions of its former self have run out, about 63 s.
const milvusReady = 3 * time.Minute

// Server is a Milvus server: running, or stopped and able to start again on the
// same data and address.
type Server struct {
	// Addr is host:port of its gRPC API.
	Addr string
	// User and Password are those of its superuser.
	User, Password string

	options devenv.Options
	files   string
	dir     string
	ports   map[string]int
	process *devenv.Process
	network *network // nil where we may not make one
}

// Start starts Milvus with authentication on and a random password, and
// returns when it answers queries.
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
	// Two servers must never run on one data directory.
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
		asked := 0
		if name == "proxy_port" {
			asked = o.Port
		}
		if err := s.ChoosePort(name, "Milvus", asked); err != nil {
			return nil, err
		}
	}
	m.ports = s.Ports
	m.Password = s.EnsurePassword(m.User)
	m.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(m.ports["proxy_port"]))
	return m, s.Save(m.dir)
}

// Start runs the server, again after Stop or Kill, and returns when it answers
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
		// The alias names its process file, which another user's must not share.
		Args:    []string{"run", "standalone", "-alias", "mnemo-" + strconv.Itoa(m.ports["proxy_port"])},
		Env:     milvusEnv(m.files, m.dir, m.ports),
		WorkDir: m.dir,
		Stop:    syscall.SIGTERM,
	}
	// Milvus listens on every address of the machine, whatever its
	// configuration says, and asks for a password on one of its ports only.
	if m.network = network; network != nil {
		spec.Thread = network.thread
		if err := network.forward(m.Addr); err != nil {
			network.close()
			return err
		}
	} else {
		m.options.Cache.Progress.Printf("    Milvus: only root can shut it off from the network; its API asks for a password, its internal ports do not")
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

// Open reports whether the server's internal ports, which ask for no password,
// can be reached from the network: only root can shut them off.
func (m *Server) Open() bool { return m.network == nil }

// Stop ends the server in order.
func (m *Server) Stop() error {
	// The server may only lose its thread, which carries its death signal, when
	// it has ended.
	defer m.network.close()
	return m.process.StopWithin(20 * time.Second)
}

// Kill ends the server at once, as a crash would.
func (m *Server) Kill() error {
	defer m.network.close()
	return m.process.Kill()
}

// ping asks for the collections: the health endpoint turns green long before
// queries are answered. A new server has a known password, which it changes.
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

// listening spares the SDK's slow connection attempts while the server starts.
func (m *Server) listening() error {
	dial := net.Dial
	if m.network != nil {
		dial = func(_, addr string) (net.Conn, error) { return m.network.dial(addr) }
	}
	conn, err := dial("tcp", m.Addr)
	if err != nil {
		return fmt.Errorf("nothing listens yet: %w", err)
	}
	return conn.Close()
}

// Done is closed when the server has ended; Err returns the reason.
func (m *Server) Done() <-chan struct{} { return m.process.Done() }

// Err returns the reason why the server ended.
func (m *Server) Err() error { return m.process.Err() }
