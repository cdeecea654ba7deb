package dashboard

import (
	"cmp"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/gofiber/fiber/v2"
	"golang.org/x/oauth2"

	"github.com/mnemo-dev/mnemo/internal/exactjson"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// attemptLife is the time limit of a sign-in at the provider.
	attemptLife = 10 * time.Minute

	attemptCookie       = "mnemo_sign_in"
	secureAttemptCookie = "__Host-mnemo_sign_in"
)

// attempt is a sign-in in progress. It is stored in a cookie, so that every replica
// but no other browser can complete it.
type attempt struct {
	Provider int
	State    string
	Nonce    string
	Verifier string // of PKCE
	Next     string
	// Platform is set for a sign-in to the platform overview.
	Platform bool `json:",omitempty"`
	// Since is when the user was asked to authenticate again, in Unix seconds; 0 if any
	// authentication of the provider suffices.
	Since int64 `json:",omitempty"`
}

func (d *Dashboard) oauth(c *fiber.Ctx, p *Provider, found *oidc.Provider) *oauth2.Config {
	return &oauth2.Config{
		ClientID: p.ClientID, ClientSecret: p.ClientSecret, Endpoint: found.Endpoint(),
		RedirectURL: origin(c) + "/sign-in/callback", Scopes: []string{oidc.ScopeOpenID, "email"},
	}
}

// startSignIn redirects to an identity provider.
func (d *Dashboard) startSignIn(c *fiber.Ctx) error {
	a := attempt{Next: localPath(c.Query("next"), "/memories")}
	// max_age also makes the provider state when it authenticated the user.
	fresh := []oauth2.AuthCodeOption{maxAge(sessionLife)}
	if c.Query("again") != "" {
		a.Since = d.Now().Unix()
		fresh = []oauth2.AuthCodeOption{maxAge(0), oauth2.SetAuthURLParam("prompt", "login")}
	}
	return d.redirectToProvider(c, a, fresh...)
}

// maxAge asks the provider to authenticate the user again if it did so longer ago.
func maxAge(age time.Duration) oauth2.AuthCodeOption {
	return oauth2.SetAuthURLParam("max_age", strconv.Itoa(int(age.Seconds())))
}

// redirectToProvider begins a sign-in at the provider that the path names.
func (d *Dashboard) redirectToProvider(c *fiber.Ctx, a attempt, options ...oauth2.AuthCodeOption) error {
	var err error
	if a.Provider, err = strconv.Atoi(c.Params("provider")); err != nil || !d.offers(a) {
		return fault.New(fault.NotFound, "unknown sign-in provider")
	}
	p := d.Providers[a.Provider]
	found, err := p.discover(c.UserContext(), d.Now)
	if err != nil {
		return d.signInFailed(c, a, err)
	}
	a.Verifier = oauth2.GenerateVerifier()
	for _, secret := range []*string{&a.State, &a.Nonce} {
		if *secret, err = tenant.NewSession(d.DatabaseCell, d.Random); err != nil {
			return err
		}
	}
	value, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("encode sign-in: %w", err)
	}
	setCookie(c, attemptCookie, secureAttemptCookie, base64.RawURLEncoding.EncodeToString(value), d.Now().Add(attemptLife))
	options = append(options, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier))
	return c.Redirect(d.oauth(c, p, found).AuthCodeURL(a.State, options...), fiber.StatusSeeOther)
}

// finishSignIn handles the provider's redirect and starts the session.
func (d *Dashboard) finishSignIn(c *fiber.Ctx) error {
	a, ok := d.attempt(c)
	setCookie(c, attemptCookie, secureAttemptCookie, "", time.Unix(0, 0))
	if !ok || subtle.ConstantTimeCompare([]byte(a.State), []byte(c.Query("state"))) != 1 {
		return d.signInFailed(c, a, fault.New(fault.Invalid, "this sign-in has expired or was started in another browser; try again"))
	}
	p := d.Providers[a.Provider]
	if err := p.checkIssuer(c, d.Now); err != nil {
		return d.signInFailed(c, a, err)
	}
	if c.Query("error") != "" {
		return d.signInFailed(c, a, fault.New(fault.Forbidden, "%s denied the sign-in; try again", p.Name))
	}
	// Anyone can forge a redirect, so the requests to the provider are limited.
	address := d.Server.ClientAddress(c)
	if err := d.Sessions.CountSignIn(c.UserContext(), address); err != nil {
		return d.signInFailed(c, a, err)
	}
	person, authenticated, err := d.verifyUser(c, p, a)
	if err != nil {
		return d.signInFailed(c, a, err)
	}
	if a.Platform {
		return d.startPlatformSession(c, a, person, authenticated)
	}
	secret, err := tenant.NewSession(d.DatabaseCell, d.Random)
	if err != nil {
		return err
	}
	err = d.Sessions.SignInExternal(c.UserContext(), tenant.ExternalSignIn{
		ExternalUser: person, Address: address, Session: tenant.HashSecret(secret), Lifetime: sessionLife, AuthenticatedAt: authenticated,
	})
	if err != nil {
		return d.signInFailed(c, a, err)
	}
	return d.replaceSession(c, secret, a.Next)
}

// verifyUser returns the user authenticated by the provider, and when it did; the zero
// time if it does not tell.
func (d *Dashboard) verifyUser(c *fiber.Ctx, p *Provider, a attempt) (tenant.ExternalUser, time.Time, error) {
	none := tenant.ExternalUser{}
	found, err := p.discover(c.UserContext(), d.Now)
	if err != nil {
		return none, time.Time{}, err
	}
	ctx := withClient(c.UserContext())
	tokens, err := p.exchange(ctx, d.oauth(c, p, found), c.Query("code"), a.Verifier)
	if err != nil {
		return none, time.Time{}, err
	}
	raw, _ := tokens.Extra("id_token").(string)
	id, err := found.Verifier(&oidc.Config{ClientID: p.ClientID, Now: d.Now}).Verify(ctx, raw)
	if err != nil {
		return none, time.Time{}, fmt.Errorf("verify ID token of %s: %w", p.Name, err)
	}
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(a.Nonce)) != 1 {
		return none, time.Time{}, fault.New(fault.Invalid, "%s confirmed a different sign-in; try again", p.Name)
	}
	claims, err := claimsOf(id)
	if err != nil || !claims.Verified || !tenant.IsEmail(claims.Email) {
		return none, time.Time{}, &fault.Error{Kind: fault.Forbidden, Err: err,
			Message: fmt.Sprintf("%s has no verified email address for you; verify it there and try again", p.Name)}
	}
	user := tenant.ExternalUser{Issuer: id.Issuer, Subject: id.Subject, Email: claims.Email}
	if p.RequireHostedDomain && !strings.EqualFold(claims.HostedDomain, user.Domain()) {
		return none, time.Time{}, fault.New(fault.Forbidden, "this is not an account of %s; sign in with the account of your organization", user.Domain())
	}
	authenticated, err := p.authenticatedAt(claims, a, d.Now())
	return user, authenticated, err
}

// idClaims are the claims of an ID token besides the standard ones.
type idClaims struct {
	Email        string `json:"email"`
	Verified     bool   `json:"email_verified"`
	HostedDomain string `json:"hd"`
	AuthTime     int64  `json:"auth_time"`
}

func claimsOf(id *oidc.IDToken) (claims idClaims, err error) {
	var raw json.RawMessage
	if err := id.Claims(&raw); err != nil {
		return claims, err //nolint:wrapcheck // the caller explains it
	}
	err = exactjson.Unmarshal(raw, &claims)
	return claims, err
}

// authLeeway is the accepted difference between the clocks of the provider and this
// server.
const authLeeway = time.Minute

// authenticatedAt returns when the provider authenticated the user. If the user was
// asked to authenticate again, an earlier time is an error.
func (p *Provider) authenticatedAt(claims idClaims, a attempt, now time.Time) (time.Time, error) {
	switch {
	case p.NoAuthTime:
		return now, nil
	case claims.AuthTime == 0 && a.Since == 0:
		return time.Time{}, nil
	case claims.AuthTime < a.Since-int64(authLeeway.Seconds()):
		return time.Time{}, fault.New(fault.Forbidden, "%s did not ask you to sign in again; contact your administrator", p.Name)
	}
	at := time.Unix(claims.AuthTime, 0)
	if at.After(now) {
		at = now
	}
	return at, nil
}

// checkIssuer rejects a response that another provider sent (RFC 9207): all of them
// redirect to the same address.
func (p *Provider) checkIssuer(c *fiber.Ctx, now func() time.Time) error {
	found, err := p.discover(c.UserContext(), now)
	if err != nil {
		return err
	}
	m, err := metadataOf(found)
	if err != nil {
		return err
	}
	given := c.Request().URI().QueryArgs().PeekMulti("iss")
	if len(given) == 0 && !m.NamesIssuers {
		return nil
	}
	if len(given) != 1 || string(given[0]) != p.Issuer {
		return fault.New(fault.Invalid, "this response is not from %s; try again", p.Name)
	}
	return nil
}

// signInFailed renders the sign-in page with an error, keeping next.
func (d *Dashboard) signInFailed(c *fiber.Ctx, a attempt, err error) error {
	return d.renderSignInError(c, signInView{Next: cmp.Or(a.Next, "/memories"), Platform: a.Platform}, err)
}

// offers reports whether the provider of a sign-in exists, and may be used for it.
func (d *Dashboard) offers(a attempt) bool {
	return a.Provider >= 0 && a.Provider < len(d.Providers) && (!a.Platform || len(d.Providers[a.Provider].PlatformAdministrators) > 0)
}

func (d *Dashboard) providers() (links []providerLink) {
	for i, p := range d.Providers {
		links = append(links, providerLink{i, p.Name})
	}
	return links
}

func (d *Dashboard) attempt(c *fiber.Ctx) (a attempt, ok bool) {
	name := attemptCookie
	if overTLS(c) {
		name = secureAttemptCookie
	}
	raw, err := base64.RawURLEncoding.DecodeString(c.Cookies(name))
	if err != nil || json.Unmarshal(raw, &a) != nil || a.State == "" {
		return attempt{}, false
	}
	a.Next = localPath(a.Next, "/memories")
	return a, d.offers(a)
}
