package milvus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// network is a network namespace with only a loopback device, for a program that
// listens on every address. A relay on 127.0.0.1 forwards to one of its ports.
type network struct {
	thread *devenv.Thread

	mu     sync.Mutex
	relay  *devenv.Relay
	closed bool
}

// newNetwork creates a namespace. It returns nil without an error if that is not
// permitted: for users other than root, and in restricted containers.
func newNetwork() (*network, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	t, err := devenv.NewThread(enterNetwork)
	if errors.Is(err, unix.EPERM) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("create network namespace: %w", err)
	}
	return &network{thread: t}, nil
}

// enterNetwork moves the calling thread to a new namespace and brings its
// loopback device up.
func enterNetwork() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("name device: %w", err)
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("bring loopback up: %w", err)
	}
	return nil
}

// forward accepts connections to addr, 127.0.0.1:port, and connects each to the
// same address inside the namespace.
func (n *network) forward(addr string) error {
	r, err := devenv.StartRelay(addr, func() (net.Conn, error) { return n.dial(addr) })
	if err != nil {
		return err
	}
	n.relay = r
	return nil
}

// dial connects inside the namespace. A socket stays in the namespace in which it
// was created.
func (n *network) dial(addr string) (conn net.Conn, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, net.ErrClosed
	}
	n.thread.Do(func() {
		// With a single address the dialer does not start another goroutine.
		conn, err = new(net.Dialer).DialContext(context.Background(), "tcp4", addr)
	})
	return conn, err
}

// close ends the relay and its connections. The kernel removes the namespace when
// it contains no process.
func (n *network) close() {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	n.closed = true
	if n.relay != nil {
		n.relay.Close()
	}
	n.thread.Close()
}
