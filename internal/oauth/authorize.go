package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strings"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Request is an authorization request (RFC 6749, 4.1.1; RFC 7636, 4.3; RFC
// 8707, 2.1).
type Request struct {
	ClientID        string
	RedirectURI     string
	ResponseType    string
	State           string
	Challenge       string
	ChallengeMethod string
	Resources       []string
}

// Ask is a valid request with its client.
type Ask struct {
	Request
	Client Client
}

// Check validates a request and returns an Error if it is invalid. Anybody can
// register a client, so users are not redirected to its address before they
// have seen it (RFC 9700, 4.11.2): the error is shown to the user.
func (s *Service) Check(ctx context.Context, r Request) (Ask, error) {
	c, err := s.client(ctx, r.ClientID)
	if err != nil {
		return Ask{}, err
	}
	if r.RedirectURI == "" && len(c.RedirectURIs) == 1 {
		r.RedirectURI = c.RedirectURIs[0]
	}
	switch {
	case !c.redirectsTo(r.RedirectURI):
		return Ask{}, &Error{InvalidRequest, "redirect_uri is not registered for this client"}
	case r.ResponseType != "code":
		return Ask{}, &Error{UnsupportedResponse, "response_type must be code"}
	case r.ChallengeMethod != "S256" || !isChallenge(r.Challenge):
		return Ask{}, &Error{InvalidRequest, "code_challenge is required, with code_challenge_method S256 (PKCE)"}
	}
	return Ask{r, c}, s.checkResource(r.Resources)
}

// checkResource rejects resources other than this server.
func (s *Service) checkResource(resources []string) error {
	for _, r := range resources {
		if strings.TrimSuffix(r, "/") != s.Resource {
			return &Error{InvalidTarget, "resource must be " + s.Resource}
		}
	}
	return nil
}

// isChallenge reports whether s is a base64url-encoded SHA-256 hash.
func isChallenge(s string) bool {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	return err == nil && len(raw) == sha256.Size
}

// Approve grants the client access to the user's data and returns the redirect
// address with the code. Forbidden if the session has ended.
func (s *Service) Approve(ctx context.Context, who tenant.Scope, session tenant.Hash, ask Ask) (string, error) {
	code, err := tenant.NewTokenOf(tenant.Code, s.Cell, s.Random)
	if err != nil {
		return "", err
	}
	g := Grant{Client: ask.Client.ID, RedirectURI: ask.RedirectURI, Challenge: ask.Challenge}
	if err := s.Grants.CreateGrant(ctx, who, session, g, tenant.HashSecret(code), CodeLife); err != nil {
		return "", err
	}
	return s.redirect(ask, url.Values{"code": {code}})
}

// Deny returns the redirect address that reports that the user denied access.
func (s *Service) Deny(ask Ask) (string, error) {
	return s.redirect(ask, url.Values{"error": {AccessDenied}, "error_description": {"the user denied access"}})
}

// responseParams are the parameters of a response.
var responseParams = []string{"code", "state", "iss", "error", "error_description"}

// answer returns the client's address with the response parameters, including
// the issuer (RFC 9207). The existing query is kept (RFC 6749, 3.1.2).
func (s *Service) redirect(ask Ask, add url.Values) (string, error) {
	u, err := url.Parse(ask.RedirectURI)
	if err != nil {
		return "", err
	}
	if ask.State != "" {
		add.Set("state", ask.State)
	}
	add.Set("iss", s.Issuer)
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += add.Encode()
	return u.String(), nil
}
