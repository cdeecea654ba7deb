package apiserver

import (
	"net/netip"
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
		s := &Server{Config: Config{TrustedProxies: tt.trusted}}
		if got := s.address(c); got != tt.want {
			t.Errorf("%s: address %s, want %s", name, got, tt.want)
		}
		app.ReleaseCtx(c)
	}
}
