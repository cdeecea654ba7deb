package httpx

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// TestAddress checks that only trusted proxies can set the client address.
func TestAddress(t *testing.T) {
	t.Parallel()
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("0.0.0.0/32")}
	for name, tt := range map[string]struct {
		trusted   []netip.Prefix
		forwarded []string
		want      string
	}{
		"no proxy":                         {nil, []string{"1.2.3.4"}, "0.0.0.0"},
		"one proxy":                        {trusted, []string{"1.2.3.4"}, "1.2.3.4"},
		"two proxies":                      {trusted, []string{"1.2.3.4, 10.1.1.1"}, "1.2.3.4"},
		"forged address":                   {trusted, []string{"9.9.9.9, 1.2.3.4"}, "1.2.3.4"},
		"forged address in its own header": {trusted, []string{"9.9.9.9", "1.2.3.4"}, "1.2.3.4"},
		"address with port":                {trusted, []string{"1.2.3.4:555"}, "1.2.3.4"},
		"invalid address":                  {trusted, []string{"unknown"}, "0.0.0.0"},
		"IPv6 address":                     {trusted, []string{"2001:db8:1:2:3:4:5:6"}, "2001:db8:1:2::/64"},
	} {
		app := fiber.New()
		c := app.AcquireCtx(&fasthttp.RequestCtx{}) // from 0.0.0.0
		for _, line := range tt.forwarded {
			c.Request().Header.Add("X-Forwarded-For", line)
		}
		p := &Proxies{Trusted: tt.trusted, Log: slog.New(slog.DiscardHandler)}
		if got := p.Address(c); got != tt.want {
			t.Errorf("%s: address %s, want %s", name, got, tt.want)
		}
		app.ReleaseCtx(c)
	}
}

// An administrator who forgets to trust the ingress reads why all clients share a limit, once.
func TestUntrustedProxyIsReportedOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		trusted, header string
		want            int
	}{
		"X-Forwarded-For":   {"10.0.0.0/8", "X-Forwarded-For", 1},
		"Forwarded":         {"10.0.0.0/8", "Forwarded", 1},
		"no proxy":          {"10.0.0.0/8", "X-Other", 0},
		"a trusted address": {"0.0.0.0/32", "X-Forwarded-For", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			p := &Proxies{Trusted: []netip.Prefix{netip.MustParsePrefix(tt.trusted)}, Log: slog.New(slog.NewTextHandler(&log, nil))}
			app := fiber.New()
			for range 2 {
				c := app.AcquireCtx(&fasthttp.RequestCtx{}) // from 0.0.0.0
				c.Request().Header.Set(tt.header, "192.0.2.1")
				p.Address(c)
				app.ReleaseCtx(c)
			}
			if got := strings.Count(log.String(), "api.trustedProxies (MNEMO_TRUSTED_PROXIES)"); got != tt.want {
				t.Errorf("%d warnings, want %d:\n%s", got, tt.want, &log)
			}
		})
	}
}
