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
	if !s.trusts(addr) {
		s.warnOfProxy(c, addr)
	}
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

// warnOfProxy logs, once per process, that a proxy that is not trusted forwards requests.
func (s *Server) warnOfProxy(c *fiber.Ctx, addr netip.Addr) {
	header := &c.Request().Header
	if len(header.Peek(fiber.HeaderXForwardedFor)) == 0 && len(header.Peek(headerForwarded)) == 0 {
		return
	}
	s.warnedOfProxy.Do(func() {
		s.Log.WarnContext(c.UserContext(), "requests are forwarded by a proxy that is not trusted: all of its clients share one limit of sign-ins; "+
			"add its network to api.trustedProxies (MNEMO_TRUSTED_PROXIES) if it is yours", "proxy", addr.String())
	})
}

// headerForwarded is the standard form of X-Forwarded-For (RFC 7239).
const headerForwarded = "Forwarded"

func (s *Server) trusts(addr netip.Addr) bool {
	for _, p := range s.TrustedProxies {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
