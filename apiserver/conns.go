package apiserver

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// maxRejecting is the most connections that are being rejected with a response. Others are
	// closed immediately.
	maxRejecting = 256
	// rejectTime is the time in which a rejected connection must send a request.
	rejectTime = 2 * time.Second
)

// rejection is the response on a connection above a limit.
var rejection = func() []byte {
	body, err := json.Marshal(newError(http.StatusServiceUnavailable, "too many connections; try again"))
	if err != nil {
		panic(err) // the value is constant
	}
	return fmt.Appendf(nil, "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Type: application/json\r\n"+
		"Retry-After: %s\r\nContent-Length: %d\r\n\r\n%s", retryAfter(0), len(body), body)
}()

// conns counts the open connections of a server.
type conns struct {
	trusts     func(netip.Addr) bool
	total      int // limit
	perAddress int // limit of an address that is not a trusted proxy

	mu        sync.Mutex
	open      int
	addresses map[netip.Addr]int
	rejected  prometheus.Counter
	rejecting atomic.Int32 // connections that wait for their rejection
}

func newConns(r prometheus.Registerer, trusts func(netip.Addr) bool) *conns {
	c := &conns{
		trusts: trusts, total: maxConns, perAddress: maxConnsPerAddress, addresses: map[netip.Addr]int{},
		rejected: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "mnemo_http_rejected_connections_total",
			Help: "Connections rejected because the server, or their address, had too many.",
		}),
	}
	r.MustRegister(c.rejected, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "mnemo_http_connections",
		Help: "Open connections of clients.",
	}, func() float64 {
		c.mu.Lock()
		defer c.mu.Unlock()
		return float64(c.open)
	}))
	return c
}

// add counts a connection, and returns false if it exceeds a limit.
func (c *conns) add(addr netip.Addr) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open >= c.total || c.addresses[addr] >= c.perAddress && !c.trusts(addr) {
		c.rejected.Inc()
		return false
	}
	c.open++
	c.addresses[addr]++
	return true
}

func (c *conns) remove(addr netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	if c.addresses[addr]--; c.addresses[addr] == 0 {
		delete(c.addresses, addr)
	}
}

// reject answers the first request of a connection with 503, and closes the connection. A client
// that receives a response before it sends a request takes it for an error of the protocol.
func (c *conns) reject(rejected net.Conn) {
	if c.rejecting.Add(1) > maxRejecting || rejected.SetDeadline(time.Now().Add(rejectTime)) != nil {
		c.rejecting.Add(-1)
		_ = rejected.Close()
		return
	}
	go func() {
		defer c.rejecting.Add(-1)
		closing := &conn{Conn: rejected, closed: func() {}}
		if _, err := rejected.Read(make([]byte, 1)); err == nil {
			_, err = rejected.Write(rejection)
			closing.unread.Store(err == nil)
		}
		_ = closing.Close()
	}()
}

// remoteAddr returns the address of the peer: a client or a proxy.
func remoteAddr(c net.Conn) netip.Addr {
	if tcp, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
