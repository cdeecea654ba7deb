package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

const (
	// providerTimeout is for each request to a provider.
	providerTimeout = 10 * time.Second
	// providerRest is how long one that did not say where its endpoints are is
	// not asked again.
	providerRest = 5 * time.Second

	invalidGrant = "invalid_grant"
)

// Provider is an identity provider of the host's choice. Only of these may
// Tenants name one in spec.oidc.issuer with effect.
type Provider struct {
	Name         string // on the button: Sign in with Name
	Issuer       string // its URL, as its discovery document says
	ClientID     string
	ClientSecret string

	asking singleflight.Group
	style  atomic.Int64 // the oauth2.AuthStyle in which it knew us; 0 until it did

	mu    sync.Mutex
	found *oidc.Provider
	away  error     // why it was not found the last time
	rest  time.Time // until when that is the answer
}

// discover asks the provider where its endpoints are, until it answered once.
// Whoever comes meanwhile, or shortly after it failed, is answered by the same
// request.
func (p *Provider) discover(ctx context.Context, now func() time.Time) (*oidc.Provider, error) {
	_, err, _ := p.asking.Do("", func() (any, error) {
		if found, err := p.known(now()); found != nil || err != nil {
			return nil, err
		}
		found, err := oidc.NewProvider(withClient(context.WithoutCancel(ctx)), p.Issuer)
		p.mu.Lock()
		defer p.mu.Unlock()
		if err != nil {
			p.away, p.rest = p.unavailable(err), now().Add(providerRest)
			return nil, p.away
		}
		p.found = found
		return found, nil
	})
	if err != nil {
		return nil, err
	}
	return p.known(now())
}

// known is what was found, or why it was not; neither when it is to be asked.
func (p *Provider) known(now time.Time) (*oidc.Provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found == nil && now.Before(p.rest) {
		return nil, p.away
	}
	return p.found, nil
}

// exchange redeems a code. Providers take our secret in a header or in the form:
// until this one took it both are tried, but not for a code that it refused.
func (p *Provider) exchange(ctx context.Context, c *oauth2.Config, code string, option oauth2.AuthCodeOption) (*oauth2.Token, error) {
	styles := []oauth2.AuthStyle{oauth2.AuthStyleInHeader, oauth2.AuthStyleInParams}
	if known := p.style.Load(); known != 0 {
		styles = []oauth2.AuthStyle{oauth2.AuthStyle(known)}
	}
	var tokens *oauth2.Token
	var err error
	for _, style := range styles {
		c.Endpoint.AuthStyle = style
		if tokens, err = c.Exchange(ctx, code, option); err == nil {
			p.style.Store(int64(style))
			return tokens, nil
		}
		refused, answered := errors.AsType[*oauth2.RetrieveError](err)
		if !answered || refused.ErrorCode == invalidGrant || refused.Response.StatusCode >= http.StatusInternalServerError {
			break
		}
	}
	return nil, p.failed(err)
}

// failed says what it means that a code was not redeemed: that it is none, that
// the provider is away, or that it and the host do not agree.
func (p *Provider) failed(err error) error {
	_, unsent := errors.AsType[*url.Error](err)
	refused, answered := errors.AsType[*oauth2.RetrieveError](err)
	if answered && refused.ErrorCode == "" {
		err = errors.New("it answers " + refused.Response.Status) // and who knows what else
	}
	switch {
	case answered && refused.ErrorCode == invalidGrant:
		return fault.New(fault.Invalid, "%s did not confirm the sign-in; try again", p.Name)
	case unsent, answered && refused.Response.StatusCode >= http.StatusInternalServerError:
		return p.unavailable(err)
	default:
		return fmt.Errorf("redeem a code of %s: %w", p.Name, err)
	}
}

func (p *Provider) unavailable(err error) error {
	return &fault.Error{Kind: fault.Unavailable, Message: p.Name + " is unavailable; try again in a moment", Err: err}
}

var providerClient = &http.Client{Timeout: providerTimeout}

func withClient(ctx context.Context) context.Context { return oidc.ClientContext(ctx, providerClient) }
