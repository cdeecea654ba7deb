package apiserver

import (
	"net"
	"net/netip"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// conns counts the open connections of a server.
type conns struct {
	trusts     func(netip.Addr) bool
	total      int // limit
	perAddress int // limit of an address that is not a trusted proxy

	mu        sync.Mutex
	open      int
	addresses map[netip.Addr]int
	rejected  prometheus.Counter
}

func newConns(r prometheus.Registerer, trusts func(netip.Addr) bool) *conns {
	c := &conns{
		trusts: trusts, total: maxConns, perAddress: maxConnsPerAddress, addresses: map[netip.Addr]int{},
		rejected: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "mnemo_http_rejected_connections_total",
			Help: "Connections closed because the server, or their address, had too many.",
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

// remoteAddr returns the address of the peer: a client or a proxy.
func remoteAddr(c net.Conn) netip.Addr {
	if tcp, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
