package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	// sendTimeout bounds an attempt, from the resolution of the name to the response.
	sendTimeout = 15 * time.Second
	// maxResponse is read of a response, so that the connection can be used again.
	maxResponse = 16 << 10
)

// Sender posts events. It refuses addresses that are not public, unless their network is
// allowed, and checks the address to which it connects, not the name.
type Sender struct {
	public clients // for https: public and allowed addresses
	inside clients // for http: allowed addresses only
	now    func() time.Time
}

// clients connect to the same addresses.
type clients struct {
	send    *http.Client
	connect *http.Client // sends nothing: each request ends with an error, errConnected after a connection
}

// of returns the clients for the URL of a request.
func (s *Sender) of(r *http.Request) clients {
	if r.URL.Scheme == "http" {
		return s.inside
	}
	return s.public
}

// NewSender returns a sender that may also reach addresses in the allowed networks, and those with
// plain HTTP.
func NewSender(allowed []netip.Prefix, now func() time.Time) *Sender {
	inside := func(a netip.Addr) bool {
		return slices.ContainsFunc(allowed, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	return &Sender{
		public: newClients(func(a netip.Addr) bool { return isPublic(a) || inside(a) }),
		inside: newClients(inside),
		now:    now,
	}
}

// newClients returns clients that connect to permitted addresses only, without a proxy, and
// follow no redirects.
func newClients(permitted func(netip.Addr) bool) clients {
	dialer := &net.Dialer{Timeout: sendTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil || !permitted(plain(to.Addr())) {
			return errForbidden
		}
		return nil
	}}
	secure := &tls.Dialer{NetDialer: dialer}
	return clients{
		send: &http.Client{
			Timeout:       sendTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport: &http.Transport{DialContext: dialer.DialContext, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: maxResponse,
				TLSHandshakeTimeout: sendTimeout, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 1},
		},
		connect: &http.Client{
			Timeout:   sendTimeout,
			Transport: &http.Transport{DialContext: connectOnly(dialer.DialContext), DialTLSContext: connectOnly(secure.DialContext)},
		},
	}
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// connectOnly closes each connection and returns errConnected. So the transport finds the address in the URL as it does
// for a delivery, but has no connection for a request.
func connectOnly(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		_ = conn.Close() // nothing was sent
		return nil, errConnected
	}
}

var errConnected = errors.New("connected")

var errForbidden = errors.New("the address is not public and not in the allowed networks")

// special are the networks of the global addresses that are not public, from IANA's registries of special-purpose
// addresses. IPv6 addresses outside of global are not public either: among them those that embed an IPv4 address.
var (
	global  = netip.MustParsePrefix("2000::/3")
	special = []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/8"),       // this network
		netip.MustParsePrefix("10.0.0.0/8"),      // private
		netip.MustParsePrefix("100.64.0.0/10"),   // shared by the customers of a provider
		netip.MustParsePrefix("127.0.0.0/8"),     // loopback
		netip.MustParsePrefix("169.254.0.0/16"),  // link-local
		netip.MustParsePrefix("172.16.0.0/12"),   // private
		netip.MustParsePrefix("192.0.0.0/24"),    // protocol assignments
		netip.MustParsePrefix("192.0.2.0/24"),    // documentation
		netip.MustParsePrefix("192.88.99.0/24"),  // 6to4 relays
		netip.MustParsePrefix("192.168.0.0/16"),  // private
		netip.MustParsePrefix("198.18.0.0/15"),   // benchmarks
		netip.MustParsePrefix("198.51.100.0/24"), // documentation
		netip.MustParsePrefix("203.0.113.0/24"),  // documentation
		netip.MustParsePrefix("224.0.0.0/3"),     // multicast, reserved, broadcast
		netip.MustParsePrefix("2001::/23"),       // protocol assignments, with Teredo
		netip.MustParsePrefix("2001:db8::/32"),   // documentation
		netip.MustParsePrefix("2002::/16"),       // 6to4
		netip.MustParsePrefix("3fff::/20"),       // documentation
	}
)

// plain returns the address without a zone, which no prefix contains, and an IPv4 address if it is one in IPv6.
func plain(a netip.Addr) netip.Addr { return a.WithZone("").Unmap() }

// isPublic reports whether an address is reachable on the internet.
func isPublic(a netip.Addr) bool {
	a = plain(a)
	return (a.Is4() || global.Contains(a)) && !slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(a) })
}

// refusedError means that the endpoint refuses this event, whatever happens later.
type refusedError struct{ error }

// goneError means that the endpoint wants no events any more.
type goneError struct{ error }

// Send posts an event and returns an error unless the response is 2xx. Its text is shown to
// administrators and contains nothing of the response.
func (s *Sender) Send(ctx context.Context, w Webhook, r Record) error {
	body, err := r.body()
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("the URL is invalid")
	}
	now := s.now()
	signature, err := sign(w.Secrets, r.ID(), now, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Mnemo")
	req.Header.Set(standardwebhooks.HeaderWebhookID, r.ID())
	req.Header.Set(standardwebhooks.HeaderWebhookTimestamp, fmt.Sprint(now.Unix()))
	req.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	res, err := s.of(req).send.Do(req)
	if err != nil {
		return describe(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxResponse)) // the status decides
	return outcome(res.StatusCode)
}

// Connect connects to the address of a webhook, with TLS for https, and sends no request. The text of its error is like that of Send.
func (s *Sender) Connect(ctx context.Context, w Webhook) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, w.URL, http.NoBody)
	if err != nil {
		return errors.New("the URL is invalid")
	}
	_, err = s.of(req).connect.Do(req) //nolint:bodyclose // there is no response
	if errors.Is(err, errConnected) {
		return nil
	}
	return describe(err)
}

// sign returns a signature with each secret.
func sign(secrets []string, id string, at time.Time, body []byte) (string, error) {
	var all []string
	for _, secret := range secrets {
		signer, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			return "", errors.New("the secret is invalid")
		}
		signature, err := signer.Sign(id, at, body)
		if err != nil {
			return "", fmt.Errorf("sign event: %w", err)
		}
		all = append(all, signature)
	}
	return strings.Join(all, " "), nil
}

// NoResponse begins the message of a failed request. The rest may contain internal addresses.
const NoResponse = "no response"

// describe returns the cause of a failed request without the URL, which may contain a secret.
func describe(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	if errors.Is(err, errForbidden) {
		return errForbidden
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return e
	}
	return fmt.Errorf(NoResponse+": %w", err)
}

func outcome(status int) error {
	failure := fmt.Errorf("status %d", status)
	switch {
	case status/100 == 2:
		return nil
	case status == http.StatusGone:
		return goneError{failure}
	case status == http.StatusBadRequest, status == http.StatusRequestEntityTooLarge, status == http.StatusUnprocessableEntity:
		return refusedError{failure}
	}
	return failure
}
