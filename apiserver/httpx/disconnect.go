package httpx

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// connectedCheck is the interval of checks for client disconnects.
const connectedCheck = 200 * time.Millisecond

// WhileConnected returns a context that is canceled when the client disconnects,
// which fasthttp does not detect while a handler runs.
func WhileConnected(ctx context.Context, c net.Conn) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if ours, ok := c.(*conn); ok {
		c = ours.Conn
	}
	socket, ok := c.(syscall.Conn)
	if !ok {
		return ctx, cancel
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return ctx, cancel
	}
	go func() {
		tick := time.NewTicker(connectedCheck)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if hungUp(raw) {
					cancel()
					return
				}
			}
		}
	}()
	return ctx, cancel
}

// hungUp peeks whether the peer closed the connection.
func hungUp(raw syscall.RawConn) bool {
	closed := false
	err := raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		closed = n == 0 && err == nil || errors.Is(err, unix.ECONNRESET)
	})
	return err != nil || closed
}
