package apiserver

import (
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	// lingerTime and lingerBytes bound how much of a body nobody wants is
	// thrown away before its connection is closed.
	lingerTime  = 5 * time.Second
	lingerBytes = 64 << 20

	// slowestBody is the rate, bytes a second, below which a body that is
	// being sent is given up.
	slowestBody = 32 << 10
	// chunkedTime is what a body of unknown length has to arrive.
	chunkedTime = 2 * time.Minute
)

// listener makes its connections able to end in a way that lets a client that
// is still sending see its answer.
type listener struct{ net.Listener }

// Accept waits for the next connection.
func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err //nolint:wrapcheck // it is compared by the server's loop
	}
	return &conn{Conn: c}, nil
}

// conn is a connection of the server.
type conn struct {
	net.Conn
	unread atomic.Bool // the client may still be sending
}

// Close closes the connection. When the client may still be sending it first
// says that no more comes and throws away what arrives, for a while: closing
// at once would reset the connection, and the client's kernel would drop the
// answer with it.
func (c *conn) Close() error {
	if c.unread.Swap(false) {
		if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil &&
			c.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
			_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
		}
	}
	return c.Conn.Close() //nolint:wrapcheck // nobody but the server's loop sees it
}

// endConnection makes the connection end with this answer, though the request
// was not read to its end.
func endConnection(ctx *fasthttp.RequestCtx) {
	ctx.SetConnectionClose()
	if c, ok := ctx.Conn().(*conn); ok {
		c.unread.Store(true)
	}
}

// bodyTimes gives every body time by its length, so that a client that only
// announces one, or sends it byte by byte, does not hold its connection for as
// long as the largest needs. The server looks at one byte of a body before its
// handler runs; the rest is read by who wants it.
func (s *Server) bodyTimes(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	config := fasthttp.RequestConfig{MaxRequestBodySize: 1, ReadTimeout: s.ReadTimeout}
	switch n := h.ContentLength(); {
	case n > 0:
		config.ReadTimeout += time.Duration(n) * time.Second / slowestBody
	case n == -1:
		config.ReadTimeout = chunkedTime
	}
	return config
}
