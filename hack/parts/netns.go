package parts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// network is a network namespace with nothing but a loopback device, for a
// program that would listen on every address of the machine. One port of it is
// reached through a forwarder that listens on 127.0.0.1.
type network struct {
	thread *thread

	mu       sync.Mutex
	listener net.Listener
	open     map[net.Conn]bool
	closed   bool
}

// newNetwork creates a namespace. It returns nil and no error where that is not
// allowed: for users other than root, and in containers that forbid it.
func newNetwork() (*network, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	t, err := newThread(enterNetwork)
	if errors.Is(err, unix.EPERM) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("create network namespace: %w", err)
	}
	return &network{thread: t, open: map[net.Conn]bool{}}, nil
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
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", addr)
	if err != nil {
		return fmt.Errorf("listen for the forwarder: %w", err)
	}
	n.listener = l
	go func() {
		for {
			outer, err := l.Accept()
			if err != nil {
				return
			}
			go n.join(outer, addr)
		}
	}()
	return nil
}

// join copies between a connection from outside and a new one inside until one
// of them ends.
func (n *network) join(outer net.Conn, addr string) {
	defer outer.Close()
	inner, err := n.dial(addr)
	if err != nil {
		return
	}
	defer inner.Close()
	if !n.track(outer, inner) {
		return
	}
	defer n.untrack(outer, inner)
	done := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{outer, inner}, {inner, outer}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			done <- struct{}{}
		}()
	}
	<-done
}

// dial connects inside the namespace: a socket stays in the one it was created
// in.
func (n *network) dial(addr string) (conn net.Conn, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, net.ErrClosed
	}
	n.thread.do(func() {
		// Without alternatives the dialer does not leave this goroutine.
		conn, err = new(net.Dialer).DialContext(context.Background(), "tcp4", addr)
	})
	return conn, err
}

func (n *network) track(conns ...net.Conn) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range conns {
		n.open[c] = true
	}
	return !n.closed
}

func (n *network) untrack(conns ...net.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range conns {
		delete(n.open, c)
	}
}

// close ends the forwarder, its connections and, when no process is left in it,
// the namespace.
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
	if n.listener != nil {
		_ = n.listener.Close()
	}
	for c := range n.open {
		_ = c.Close()
	}
	n.thread.close()
}
