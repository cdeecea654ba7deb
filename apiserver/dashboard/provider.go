package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

const (
	// providerTimeout is the timeout of each request to a provider.
	providerTimeout = 10 * time.Second
	// discoveryBackoff is how long a failed discovery is not retried.
	discoveryBackoff = 5 * time.Second

	invalidGrant = "invalid_grant"
)

// Provider is a configured identity provider. spec.oidc.issuer of a Tenant must name
// one of them.
type Provider struct {
	Name         string // on the button: Sign in with Name
	Issuer       string // its URL, as in the discovery document
	ClientID     string
	ClientSecret string
	// RequireHostedDomain rejects users whose ID token has no claim hd with the domain of
	// their address: Google sets it for accounts of an organization only.
	RequireHostedDomain bool
	// EndSession signs users out of the provider as well when they sign out.
	EndSession bool
	// NoAuthTime accepts a new sign-in as authentication, for providers that do not
	// support max_age and auth_time.
	NoAuthTime bool
	// PlatformAdministrators are the addresses of users who see the platform overview.
	PlatformAdministrators []string

	discovery singleflight.Group
	style     atomic.Int64 // the oauth2.AuthStyle that worked; 0 if unknown

	mu           sync.Mutex
	found        *oidc.Provider
	discoveryErr error     // of the last discovery
	retryAt      time.Time // time of the next discovery
}

// discover returns the discovery document of the provider, which is fetched once.
// Concurrent calls, and calls shortly after a failure, share one request.
func (p *Provider) discover(ctx context.Context, now func() time.Time) (*oidc.Provider, error) {
	_, err, _ := p.discovery.Do("", func() (any, error) {
		if found, err := p.cached(now()); found != nil || err != nil {
			return nil, err
		}
		found, err := oidc.NewProvider(withClient(context.WithoutCancel(ctx)), p.Issuer)
		p.mu.Lock()
		defer p.mu.Unlock()
		if err != nil {
			p.discoveryErr, p.retryAt = p.unavailable(err), now().Add(discoveryBackoff)
			return nil, p.discoveryErr
		}
		p.found = found
		return found, nil
	})
	if err != nil {
		return nil, err
	}
	return p.cached(now())
}

// cached returns the discovery document or a recent error; neither if discovery is
// due.
func (p *Provider) cached(now time.Time) (*oidc.Provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found == nil && now.Before(p.retryAt) {
		return nil, p.discoveryErr
	}
	return p.found, nil
}

// exchange redeems a code. Providers accept the client secret in a header or in the
// form: both are tried until one works, except for rejected codes.
func (p *Provider) exchange(ctx context.Context, c *oauth2.Config, code, verifier string) (*oauth2.Token, error) {
	styles := []oauth2.AuthStyle{oauth2.AuthStyleInHeader, oauth2.AuthStyleInParams}
	if known := p.style.Load(); known != 0 {
		styles = []oauth2.AuthStyle{oauth2.AuthStyle(known)}
	}
	var tokens *oauth2.Token
	var err error
	for _, style := range styles {
		c.Endpoint.AuthStyle = style
		if tokens, err = c.Exchange(ctx, code, oauth2.VerifierOption(verifier)); err == nil {
			p.style.Store(int64(style))
			return tokens, nil
		}
		rejection, responded := errors.AsType[*oauth2.RetrieveError](err)
		if !responded || rejection.ErrorCode == invalidGrant || rejection.Response.StatusCode >= http.StatusInternalServerError {
			break
		}
	}
	return nil, p.failed(err, code, verifier)
}

// failed classifies an exchange error: the code is invalid, the provider is
// unavailable, or the configuration is wrong. The error is logged.
func (p *Provider) failed(err error, code, verifier string) error {
	_, unsent := errors.AsType[*url.Error](err)
	rejection, responded := errors.AsType[*oauth2.RetrieveError](err)
	if responded {
		err = errors.New(describe(rejection, p.ClientSecret, code, verifier))
	}
	switch {
	case responded && rejection.ErrorCode == invalidGrant:
		return fault.New(fault.Invalid, "%s did not confirm the sign-in; try again", p.Name)
	case unsent, responded && rejection.Response.StatusCode >= http.StatusInternalServerError:
		return p.unavailable(err)
	default:
		return fmt.Errorf("redeem code of %s: %w", p.Name, err)
	}
}

// maxDescription limits how much of a provider's description an error repeats, in bytes.
const maxDescription = 200

// describe returns the status of a response and the provider's description, which may
// quote the request, without the secrets. The rest of the body is not trusted.
func describe(r *oauth2.RetrieveError, secrets ...string) string {
	text := r.ErrorDescription
	for _, secret := range secrets {
		if secret != "" {
			text = strings.NewReplacer(secret, "(secret)", url.QueryEscape(secret), "(secret)").Replace(text)
		}
	}
	if len(text) > maxDescription {
		text = strings.ToValidUTF8(text[:maxDescription], "") + "…"
	}
	return strings.TrimSpace(strings.Join([]string{"response status", r.Response.Status, r.ErrorCode, text}, " "))
}

func (p *Provider) unavailable(err error) error {
	return &fault.Error{Kind: fault.Unavailable, Message: fmt.Sprintf("%s is unavailable; try again in a moment", p.Name), Err: err}
}

// metadata are the members of the discovery document that go-oidc does not read.
type metadata struct {
	EndSession   string `json:"end_session_endpoint"`
	NamesIssuers bool   `json:"authorization_response_iss_parameter_supported"`
}

func metadataOf(found *oidc.Provider) (m metadata, err error) {
	if err := found.Claims(&m); err != nil {
		return m, fmt.Errorf("read metadata: %w", err)
	}
	return m, nil
}

var providerClient = &http.Client{Timeout: providerTimeout}

func withClient(ctx context.Context) context.Context { return oidc.ClientContext(ctx, providerClient) }
