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
	"github.com/mnemo-dev/mnemo/internal/textrule"
)

const (
	maxRedirects = 10
	maxURI       = 2000 // bytes
	maxName      = 100  // characters
)

// Registration is a client's registration request (RFC 7591).
type Registration struct {
	Name          string
	RedirectURIs  []string
	GrantTypes    []string
	ResponseTypes []string
}

// Validate returns an Error if the registration is invalid.
func (r Registration) Validate() error {
	if n := len(r.RedirectURIs); n == 0 || n > maxRedirects {
		return &Error{InvalidRedirect, fmt.Sprintf("redirect_uris must contain 1 to %d addresses, not %d", maxRedirects, n)}
	}
	for i, uri := range r.RedirectURIs {
		if err := checkRedirect(uri); err != "" {
			return &Error{InvalidRedirect, fmt.Sprintf("redirect_uris[%d] %s", i, err)}
		}
	}
	if len(r.GrantTypes) > 0 && !slices.Contains(r.GrantTypes, "authorization_code") {
		return &Error{InvalidMetadata, "grant_types must contain authorization_code"}
	}
	if len(r.ResponseTypes) > 0 && !slices.Contains(r.ResponseTypes, "code") {
		return &Error{InvalidMetadata, "response_types must contain code"}
	}
	return nil
}

// checkRedirect returns why a redirect address is invalid, or "".
func checkRedirect(uri string) string {
	u, err := url.Parse(uri)
	switch {
	case err != nil || u.Scheme == "" || len(uri) > maxURI || strings.ContainsFunc(uri, func(r rune) bool { return r <= ' ' || r > '~' }):
		return fmt.Sprintf("must be an absolute ASCII URL of at most %d bytes", maxURI)
	case strings.Contains(uri, "#"):
		return "must not have a fragment"
	case u.User != nil:
		return "must not contain a user"
	}
	if problem := checkQuery(u.RawQuery); problem != "" {
		return problem
	}
	switch strings.ToLower(u.Scheme) {
	case "https":
		// The page's content security policy contains the host, so other
		// characters are rejected.
		if u.Hostname() == "" || strings.Trim(strings.ToLower(u.Host), "abcdefghijklmnopqrstuvwxyz0123456789.-_:[]") != "" {
			return "must have a valid host"
		}
	case "http":
		if !isLoopback(u) {
			return "must be https, except on localhost, 127.0.0.1 and [::1]"
		}
	default:
		return checkPrivateScheme(u)
	}
	return ""
}

// checkQuery returns why the query of a redirect address, to which the response
// is added, is invalid, or "".
func checkQuery(raw string) string {
	q, err := url.ParseQuery(raw)
	if err != nil {
		return "must have a valid query"
	}
	for _, name := range responseParams {
		if q.Has(name) {
			return "must not contain " + name + ", which is a parameter of the response"
		}
	}
	return ""
}

// checkOwn returns why an address with a private-use scheme is invalid, or "".
// It must have a path, or its scheme must be a reversed domain name of the
// vendor (RFC 8252, 7.1).
func checkPrivateScheme(u *url.URL) string {
	if u.Host == "" && (u.Opaque != "" || !strings.Contains(u.Scheme, ".")) || leavesApp(u) {
		return "must be https, http on localhost, or a private-use scheme such as app://name or com.example.app:/path"
	}
	return ""
}

// Schemes that browsers handle, or operating systems open.
var (
	browserSchemes = []string{
		"about", "blob", "data", "file", "filesystem", "javascript", "vbscript", "view-source", "feed", "ws", "wss",
		"edge", "opera", "brave", "vivaldi", "safari", "duckduckgo", "ddgquicklink", "x-web-search", "intent", "android-app",
		// Schemes that web sites may register (HTML, registerProtocolHandler).
		"bitcoin", "cabal", "dat", "did", "doi", "dweb", "ethereum", "ftp", "ftps", "geo", "hyper", "im", "ipfs", "ipns", "irc", "ircs", "magnet",
		"mailto", "matrix", "mms", "news", "nntp", "openpgp4fpr", "sftp", "sip", "sms", "smsto", "ssb", "ssh", "tel", "urn", "webcal", "wtai", "xmpp",
	}
	browserSchemePrefixes = []string{"web+", "ext+", "chrome", "googlechrome", "microsoft-edge", "x-safari", "firefox", "moz-", "opera-", "brave-", "touch-"}
)

// leavesApp reports whether addresses of the scheme are known to be opened by
// something else than the app, usually a web site.
func leavesApp(u *url.URL) bool {
	target, err := url.PathUnescape(strings.ToLower(strings.TrimPrefix(u.String(), u.Scheme+":")))
	return err != nil || strings.Contains(target, "http:") || strings.Contains(target, "https:") ||
		strings.Contains(u.Scheme, "http") || strings.HasSuffix(u.Scheme, "-extension") || slices.Contains(browserSchemes, u.Scheme) ||
		slices.ContainsFunc(browserSchemePrefixes, func(p string) bool { return strings.HasPrefix(u.Scheme, p) })
}

func isLoopback(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// redirectsTo reports whether codes may be sent to the address: a registered
// one, on a loopback host with any port (RFC 8252, 7.3).
func (c Client) redirectsTo(uri string) bool {
	if slices.Contains(c.RedirectURIs, uri) {
		return true
	}
	given := withoutPort(uri)
	return given != "" && slices.ContainsFunc(c.RedirectURIs, func(known string) bool { return withoutPort(known) == given })
}

// withoutPort returns an http loopback address without its port, and "" for
// others.
func withoutPort(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "http" || checkRedirect(uri) != "" {
		return ""
	}
	u.Host = u.Hostname()
	return u.String()
}

// Register creates a client. An Error for an invalid registration, RateLimited
// after too many.
func (s *Service) Register(ctx context.Context, r Registration, address string) (Client, error) {
	if err := r.Validate(); err != nil {
		return Client{}, err
	}
	id, err := s.newID()
	if err != nil {
		return Client{}, err
	}
	c := Client{ID: id, Name: cleanName(r.Name), RedirectURIs: r.RedirectURIs, CreatedAt: s.Now()}
	if err := s.Clients.CreateClient(ctx, c, address); err != nil {
		return Client{}, err
	}
	return c, nil
}

// maxMarks is the number of combining marks that a character of a name may have. Scripts
// need up to three; more cover the text above and below.
const maxMarks = 3

// cleanName returns a name that is safe to display: without characters that
// change the direction of text or are invisible, and limited in length.
func cleanName(name string) string {
	marks := maxMarks // none before the first character
	name = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		switch {
		case !unicode.IsPrint(r) || !unicode.Is(unicode.M, r) && textrule.IsBlank(string(r)):
			return ' '
		case !unicode.Is(unicode.M, r):
			marks = 0
		case marks == maxMarks:
			return -1
		default:
			marks++
		}
		return r
	}, strings.ToValidUTF8(name, ""))), " ")
	if runes := []rune(name); len(runes) > maxName {
		name = string(runes[:maxName]) + "…"
	}
	if name == "" {
		return "Unnamed app"
	}
	return name
}

var errNoClient = &Error{InvalidClient, "this client is not registered, or no longer is; register it again"}

// client returns a client; an Error if it is unknown.
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
