package apiserver

import (
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	// lingerTime and lingerBytes bound how much of an unwanted body is discarded
	// before its connection is closed.
	lingerTime  = 5 * time.Second
	lingerBytes = 64 << 20

	// minBodyRate is the minimum average upload rate, bytes per second.
	minBodyRate = 32 << 10
	// chunkedTimeout is the read timeout for a body of unknown length.
	chunkedTimeout = 2 * time.Minute
)

// listener wraps its connections in conn, so that a client that is still sending
// receives its response before the connection closes.
type listener struct{ net.Listener }

// Accept waits for the next connection.
func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err //nolint:wrapcheck // compared by the server loop
	}
	return &conn{Conn: c}, nil
}

// conn is a connection of the server.
type conn struct {
	net.Conn
	unread atomic.Bool // the client may still be sending
}

// Close closes the connection. If the client may still be sending, Close first
// shuts down the write side and discards input for a while: an immediate close
// would reset the connection, and the client would lose the response.
func (c *conn) Close() error {
	if c.unread.Swap(false) {
		if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil &&
			c.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
			_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
		}
	}
	return c.Conn.Close() //nolint:wrapcheck // seen only by the server loop
}

// closeConnection closes the connection after this response, although the request
// was not read completely.
func closeConnection(ctx *fasthttp.RequestCtx) {
	ctx.SetConnectionClose()
	if c, ok := ctx.Conn().(*conn); ok {
		c.unread.Store(true)
	}
}

// bodyTimeout sets the read timeout of a body by its length, so that a slow
// client cannot hold a connection for as long as the largest body may need. The
// server reads one byte of the body before the handler runs.
func (s *Server) bodyTimeout(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	config := fasthttp.RequestConfig{MaxRequestBodySize: 1, ReadTimeout: s.ReadTimeout}
	switch n := h.ContentLength(); {
	case n > 0:
		config.ReadTimeout += time.Duration(n) * time.Second / minBodyRate
	case n == -1:
		config.ReadTimeout = chunkedTimeout
	}
	return config
}
