package apiserver

import (
	"bytes"
	"net"
	"net/netip"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// address returns the client address of a request: the last address in
// X-Forwarded-For that is not a trusted proxy. For IPv6 it is the /64 network,
// because a single client may own all of it.
func (s *Server) address(c *fiber.Ctx) string {
	addr, err := netip.ParseAddr(c.Context().RemoteIP().String())
	if err != nil {
		return ""
	}
	addr = addr.Unmap()
	lines := c.Request().Header.PeekAll(fiber.HeaderXForwardedFor)
	hops := strings.Split(string(bytes.Join(lines, []byte(","))), ",")
	for i := len(hops) - 1; i >= 0 && s.trusts(addr); i-- {
		hop := strings.TrimSpace(hops[i])
		if host, _, err := net.SplitHostPort(hop); err == nil {
			hop = host
		}
		next, err := netip.ParseAddr(hop)
		if err != nil {
			break
		}
		addr = next.Unmap()
	}
	if addr.Is4() {
		return addr.String()
	}
	network, err := addr.Prefix(64)
	if err != nil {
		return addr.String()
	}
	return network.String()
}

func (s *Server) trusts(addr netip.Addr) bool {
	for _, p := range s.TrustedProxies {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
