package httpx

import (
	"bytes"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/gofiber/fiber/v2"
)

// Proxies are the proxies whose X-Forwarded-For is trusted.
type Proxies struct {
	Trusted []netip.Prefix
	Log     *slog.Logger

	// warned limits the warning of a proxy that is not trusted to one.
	warned sync.Once
}

// Address returns the client address of a request: the last address in
// X-Forwarded-For that is not a trusted proxy. For IPv6 it is the /64 network,
// because a single client may own all of it.
func (p *Proxies) Address(c *fiber.Ctx) string {
	addr, err := netip.ParseAddr(c.Context().RemoteIP().String())
	if err != nil {
		return ""
	}
	addr = addr.Unmap()
	if !p.trusts(addr) {
		p.warnOfProxy(c, addr)
	}
	lines := c.Request().Header.PeekAll(fiber.HeaderXForwardedFor)
	hops := strings.Split(string(bytes.Join(lines, []byte(","))), ",")
	for i := len(hops) - 1; i >= 0 && p.trusts(addr); i-- {
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
func (p *Proxies) warnOfProxy(c *fiber.Ctx, addr netip.Addr) {
	header := &c.Request().Header
	if len(header.Peek(fiber.HeaderXForwardedFor)) == 0 && len(header.Peek(headerForwarded)) == 0 {
		return
	}
	p.warned.Do(func() {
		p.Log.WarnContext(c.UserContext(), "requests are forwarded by a proxy that is not trusted: all of its clients share one limit of sign-ins; "+
			"add its network to api.trustedProxies (MNEMO_TRUSTED_PROXIES) if it is yours", "proxy", addr.String())
	})
}

// headerForwarded is the standard form of X-Forwarded-For (RFC 7239).
const headerForwarded = "Forwarded"

func (p *Proxies) trusts(addr netip.Addr) bool {
	return slices.ContainsFunc(p.Trusted, func(network netip.Prefix) bool { return network.Contains(addr) })
}
