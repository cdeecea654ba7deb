package oauth

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

const (
	maxRedirects = 10
	maxURI       = 2000 // bytes
	maxName      = 100  // characters
)

// Registration is what a program says of itself (RFC 7591).
type Registration struct {
	Name          string
	RedirectURIs  []string
	GrantTypes    []string
	ResponseTypes []string
}

// Validate reports what is wrong with the registration, as an Error.
func (r Registration) Validate() error {
	if n := len(r.RedirectURIs); n == 0 || n > maxRedirects {
		return &Error{InvalidRedirect, fmt.Sprintf("redirect_uris must hold 1 to %d addresses, not %d", maxRedirects, n)}
	}
	for i, uri := range r.RedirectURIs {
		if err := checkRedirect(uri); err != "" {
			return &Error{InvalidRedirect, fmt.Sprintf("redirect_uris[%d] %s", i, err)}
		}
	}
	if len(r.GrantTypes) > 0 && !slices.Contains(r.GrantTypes, "authorization_code") {
		return &Error{InvalidMetadata, "grant_types must hold authorization_code"}
	}
	if len(r.ResponseTypes) > 0 && !slices.Contains(r.ResponseTypes, "code") {
		return &Error{InvalidMetadata, "response_types must hold code"}
	}
	return nil
}

// checkRedirect says what is wrong with an address that codes are sent to.
func checkRedirect(uri string) string {
	u, err := url.Parse(uri)
	switch {
	case err != nil || u.Scheme == "" || len(uri) > maxURI || strings.ContainsFunc(uri, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }):
		return fmt.Sprintf("must be a whole address of at most %d bytes", maxURI)
	case strings.Contains(uri, "#"):
		return "must have no fragment"
	case u.User != nil:
		return "must hold no user"
	}
	switch strings.ToLower(u.Scheme) {
	case "https":
		// A page's policy names it; nothing else may come into that.
		if u.Hostname() == "" || strings.Trim(strings.ToLower(u.Host), "abcdefghijklmnopqrstuvwxyz0123456789.-_:[]") != "" {
			return "must name a host"
		}
	case "http":
		if !isLoopback(u) {
			return "must be https, except on localhost, 127.0.0.1 and [::1]"
		}
	case "javascript", "data", "vbscript", "file", "blob", "about", "ftp", "ws", "wss", "view-source", "filesystem", "mailto", "tel", "sms":
		return "must be https or a scheme of the program's own"
	}
	return ""
}

func isLoopback(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// redirectsTo reports whether codes may be sent to the address: one that was
// registered, on this machine with whichever port is free (RFC 8252, 7.3).
func (c Client) redirectsTo(uri string) bool {
	if slices.Contains(c.RedirectURIs, uri) {
		return true
	}
	given := withoutPort(uri)
	return given != "" && slices.ContainsFunc(c.RedirectURIs, func(known string) bool { return withoutPort(known) == given })
}

// withoutPort is an http address of this machine without its port, "" for others.
func withoutPort(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "http" || !isLoopback(u) || u.User != nil || u.Fragment != "" {
		return ""
	}
	u.Host = u.Hostname()
	return u.String()
}

// Register makes a client. An Error for a bad registration, RateLimited when
// there were too many.
func (s *Service) Register(ctx context.Context, r Registration, address string) (Client, error) {
	if err := r.Validate(); err != nil {
		return Client{}, err
	}
	id, err := s.random()
	if err != nil {
		return Client{}, err
	}
	c := Client{ID: id, Name: cleanName(r.Name), RedirectURIs: r.RedirectURIs, CreatedAt: s.Now()}
	if err := s.Clients.CreateClient(ctx, c, address); err != nil {
		return Client{}, err
	}
	return c, nil
}

// cleanName is a name as a person can be shown it: of letters that cannot turn
// the page's text around, and not too long.
func cleanName(name string) string {
	name = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(name, ""))), " ")
	if runes := []rune(name); len(runes) > maxName {
		name = string(runes[:maxName]) + "…"
	}
	if name == "" {
		return "A program without a name"
	}
	return name
}

var errNoClient = &Error{InvalidClient, "this client is not registered here (any more): register it again"}

// client finds a client; an unknown one is an Error.
func (s *Service) client(ctx context.Context, id string) (Client, error) {
	switch {
	case id == "":
		return Client{}, &Error{InvalidRequest, "client_id is required, as a parameter of the request"}
	case !isID(id):
		return Client{}, errNoClient
	}
	c, err := s.Clients.Client(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return Client{}, errNoClient
	}
	return c, err
}
