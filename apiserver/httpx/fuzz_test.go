package httpx

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// FuzzAddress: the client address is never an address that only an untrusted client
// named, and is canonical.
func FuzzAddress(f *testing.F) {
	app := fiber.New()
	proxies := &Proxies{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Log: slog.New(slog.DiscardHandler)}
	for _, hops := range []string{"1.2.3.4", "9.9.9.9, 1.2.3.4", "::ffff:1.2.3.4", "[2001:db8::1]:80", "fe80::1%eth0", "1.2.3.4, 10.0.0.1", ",", "unknown"} {
		f.Add(hops, true)
		f.Add(hops, false)
	}
	f.Fuzz(func(t *testing.T, hops string, trusted bool) {
		remote := net.IPv4(192, 0, 2, 1)
		if trusted {
			remote = net.IPv4(10, 9, 9, 9)
		}
		var ctx fasthttp.RequestCtx
		ctx.Init(&fasthttp.Request{}, &net.TCPAddr{IP: remote}, nil)
		ctx.Request.Header.Set(fiber.HeaderXForwardedFor, hops)
		c := app.AcquireCtx(&ctx)
		defer app.ReleaseCtx(c)
		got := proxies.Address(c)
		if !trusted && got != remote.String() {
			t.Fatalf("%q from %s: address %q", hops, remote, got)
		}
		if network, err := netip.ParsePrefix(got); err == nil {
			if network.Bits() != 64 || network.Masked() != network || network.Addr().Is4() || network.Addr().Zone() != "" {
				t.Fatalf("%q: network %q", hops, got)
			}
		} else if addr, err := netip.ParseAddr(got); err != nil || !addr.Is4() {
			t.Fatalf("%q: address %q", hops, got)
		}
	})
}

// FuzzDecodeJSON: a body is rejected with a short message, or decodes to what it
// encodes to again.
func FuzzDecodeJSON(f *testing.F) {
	type nested struct {
		Query     string   `json:"query"`
		MaxTokens *Integer `json:"maxTokens"`
	}
	type document struct {
		Text     string    `json:"text"`
		BucketID opaque    `json:"bucketId"`
		IDs      []string  `json:"ids"`
		Queries  []*nested `json:"queries"`
		Flag     *bool     `json:"flag"`
	}
	for _, body := range []string{
		`{"text":"a","bucketId":"7","ids":["a"],"queries":[{"query":"q","maxTokens":1e2}],"flag":true}`, `{"ids":[null]}`,
		`{"queries":[{"maxTokens":1.5}]}`, `{"text":"\ud800"}`, `{"a":[[{"b":null}]],"TEXT":"x","te\u0078t":1}`, `[]`, `{"bucketId":{"a":[1,"}"]}}`, "\xff",
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var first document
		if err := DecodeJSON(bytes.Clone(body), &first); err != nil {
			if message := err.Error(); !utf8.ValidString(message) || len(message) > 400+2*len(body) {
				t.Fatalf("%q: %q", body, message)
			}
			return
		}
		if !utf8.ValidString(first.Text) {
			t.Fatalf("%q: text %q", body, first.Text)
		}
		for i, q := range first.Queries {
			if q == nil {
				t.Fatalf("%q: query %d is null", body, i)
			}
		}
		again, err := json.Marshal(map[string]any{"text": first.Text, "ids": first.IDs, "queries": first.Queries, "flag": first.Flag})
		if err != nil {
			t.Fatal(err)
		}
		var second document
		if err := DecodeJSON(again, &second); err != nil || second.Text != first.Text || len(second.Queries) != len(first.Queries) {
			t.Fatalf("%q, and again %q: %v", body, again, err)
		}
	})
}
