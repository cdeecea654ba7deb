package httpx

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
	body, err := json.Marshal(NewError(http.StatusServiceUnavailable, "too many connections; try again"))
	if err != nil {
		panic(err) // the value is constant
	}
	return fmt.Appendf(nil, "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Type: application/json\r\n"+
		"Retry-After: %s\r\nContent-Length: %d\r\n\r\n%s", retryAfter(0), len(body), body)
}()

// Conns counts the open connections of a server.
type Conns struct {
	proxies    *Proxies
	total      int // limit
	perAddress int // limit of an address that is not a trusted proxy

	mu        sync.Mutex
	open      int
	addresses map[netip.Addr]int
	rejected  prometheus.Counter
	rejecting atomic.Int32 // connections that wait for their rejection
}

// NewConns returns the connections of a server, and registers their metrics.
func NewConns(r prometheus.Registerer, proxies *Proxies) *Conns {
	c := &Conns{
		proxies: proxies, total: maxConns, perAddress: maxConnsPerAddress, addresses: map[netip.Addr]int{},
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

// Listener wraps the connections that l accepts, and rejects those above the limits. A client
// that is still sending receives its response before the connection closes, and must keep
// sending at a minimum rate.
func (c *Conns) Listener(l net.Listener) net.Listener { return listener{l, c} }

// add counts a connection, and returns false if it exceeds a limit.
func (c *Conns) add(addr netip.Addr) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open >= c.total || c.addresses[addr] >= c.perAddress && !c.proxies.trusts(addr) {
		c.rejected.Inc()
		return false
	}
	c.open++
	c.addresses[addr]++
	return true
}

func (c *Conns) remove(addr netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	if c.addresses[addr]--; c.addresses[addr] == 0 {
		delete(c.addresses, addr)
	}
}

// reject answers the first request of a connection with 503, and closes the connection. A client
// that receives a response before it sends a request takes it for an error of the protocol.
func (c *Conns) reject(rejected net.Conn) {
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
