package httpx

import (
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	// lingerTime and lingerBytes bound how much of an unwanted body is discarded
	// before its connection is closed.
	lingerTime  = 5 * time.Second
	lingerBytes = 64 << 20

	// minBodyRate is the minimum average rate of a body, bytes per second, after the read
	// timeout.
	minBodyRate = 32 << 10
	// stallTimeout is the longest pause within a body.
	stallTimeout = time.Minute

	// maxConns and maxConnsPerAddress are the most connections of a server, and of a
	// client address that is not a trusted proxy. An idle connection holds about 20 KiB.
	maxConns           = 4096
	maxConnsPerAddress = 1024
)

// listener wraps its connections in conn, and rejects those above the limits.
type listener struct {
	net.Listener

	conns *Conns
}

// Accept waits for the next connection within the limits.
func (l listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err //nolint:wrapcheck // compared by the server loop
		}
		addr := remoteAddr(c)
		if l.conns.add(addr) {
			return &conn{Conn: c, closed: func() { l.conns.remove(addr) }}, nil
		}
		l.conns.reject(c)
	}
}

// conn is a connection of the server. A client that is still sending receives its
// response before the connection closes, and must keep sending at a minimum rate.
type conn struct {
	net.Conn
	unread atomic.Bool // the client may still be sending
	once   sync.Once
	closed func()

	mu       sync.Mutex
	deadline time.Time // as set by the server
	received int64     // bytes since then
}

// SetReadDeadline sets the time at which reading fails, if nothing is received by then.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	c.deadline, c.received = t, 0
	c.mu.Unlock()
	return c.Conn.SetReadDeadline(t) //nolint:wrapcheck // seen only by the server loop
}

// Read reads from the connection. Received bytes extend the read deadline as far as the
// minimum rate allows, so that announcing a large body is not enough to hold a connection.
func (c *conn) Read(p []byte) (int, error) {
	if t := c.extended(time.Now()); !t.IsZero() {
		if err := c.Conn.SetReadDeadline(t); err != nil {
			return 0, err //nolint:wrapcheck // seen only by the server loop
		}
	}
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	c.received += int64(n)
	c.mu.Unlock()
	return n, err //nolint:wrapcheck // compared by the server loop
}

// extended returns the read deadline that the received bytes earned, or the zero time
// if the server's applies.
func (c *conn) extended(now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deadline.IsZero() || c.received == 0 {
		return time.Time{}
	}
	t := c.deadline.Add(time.Duration(c.received) * time.Second / minBodyRate)
	if stalled := now.Add(stallTimeout); t.After(stalled) {
		return stalled
	}
	return t
}

// Close closes the connection. If the client may still be sending, Close first
// shuts down the write side and discards input for a while: an immediate close
// would reset the connection, and the client would lose the response.
func (c *conn) Close() error {
	defer c.once.Do(c.closed)
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

const (
	// headerLength holds the length of a body while fasthttp must not know it.
	headerLength = "X-Mnemo-Length"
	// expectContinue is an expectation that fasthttp, which compares its case, does not handle.
	expectContinue = "100-Continue"
)

// Prepare configures a server for the middleware of this package: bodies are read after the head of a request was
// checked, and a request that cannot be parsed, or has an unknown method, closes its connection. allowed returns the
// Allow header of a path.
func Prepare(s *fasthttp.Server, readTimeout time.Duration, allowed func(path string) string) {
	s.Handler = restoreLength(rejectUnknownMethods(s.Handler, allowed))
	s.HeaderReceived = deferBody(readTimeout)
	s.ErrorHandler = closeAfter(s.ErrorHandler)
}

// deferBody makes fasthttp call the handler when it has received the headers. It would wait for a byte of the body, and
// ask for a body that the headers already refuse. The client has the read timeout again for the first bytes of a
// body; conn.Read extends the deadline for the others.
func deferBody(readTimeout time.Duration) func(*fasthttp.RequestHeader) fasthttp.RequestConfig {
	return func(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
		h.Set(headerLength, strconv.Itoa(h.ContentLength())) // replaces the client's
		if h.ContentLength() > 0 {
			h.SetContentLength(0)
		}
		if strings.EqualFold(string(h.Peek(fasthttp.HeaderExpect)), expectContinue) {
			h.Set(fasthttp.HeaderExpect, expectContinue)
		}
		return fasthttp.RequestConfig{ReadTimeout: readTimeout}
	}
}

// restoreLength undoes what deferBody did to the length of the body.
func restoreLength(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		h := &ctx.Request.Header
		if n, err := strconv.Atoi(string(h.Peek(headerLength))); err == nil && n > 0 {
			h.SetContentLength(n)
		}
		h.Del(headerLength)
		next(ctx)
	}
}
