package oauth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// CodeInput is a request to redeem a code.
type CodeInput struct {
	ClientID    string
	Code        string
	RedirectURI string
	Verifier    string
	Resources   []string
}

// Redeem issues the first tokens of a grant for its code. An Error if the code
// is invalid, belongs to another client, or was used before, which ends the
// grant.
func (s *Service) Redeem(ctx context.Context, in CodeInput) (Tokens, error) {
	return s.spend(ctx, tenant.Code, in.Code, in.ClientID, in.Resources, func(g Grant) error {
		sum := sha256.Sum256([]byte(in.Verifier))
		challenge := base64.RawURLEncoding.EncodeToString(sum[:])
		switch {
		case in.RedirectURI != "" && g.RedirectURI != in.RedirectURI:
			return &Error{InvalidGrant, "redirect_uri differs from the authorization request"}
		case subtle.ConstantTimeCompare([]byte(challenge), []byte(g.Challenge)) != 1:
			return &Error{InvalidGrant, "code_verifier does not match the code_challenge"}
		}
		return nil
	})
}

// Refresh consumes a refresh token and issues new tokens. An Error if it is
// invalid, belongs to another client, or was used before, which ends the grant.
func (s *Service) Refresh(ctx context.Context, client, refresh string, resources []string) (Tokens, error) {
	return s.spend(ctx, tenant.RefreshToken, refresh, client, resources, func(Grant) error { return nil })
}

// errInvalidGrant does not reveal the owner of the secret.
var errInvalidGrant = &Error{InvalidGrant, "the code or token is unknown, expired or already used; ask the user to authorize again"}

// spend issues tokens for a secret of the kind that belongs to the client, if
// check allows it.
func (s *Service) spend(ctx context.Context, kind tenant.TokenKind, secret, client string, resources []string, check func(Grant) error) (Tokens, error) {
	if _, err := s.client(ctx, client); err != nil {
		return Tokens{}, err
	}
	if err := s.checkResource(resources); err != nil {
		return Tokens{}, err
	}
	if !kind.Is(secret) {
		return Tokens{}, errInvalidGrant
	}
	access, err := tenant.NewTokenOf(tenant.AccessToken, s.Cell, s.Random)
	if err != nil {
		return Tokens{}, err
	}
	refresh, err := tenant.NewTokenOf(tenant.RefreshToken, s.Cell, s.Random)
	if err != nil {
		return Tokens{}, err
	}
	err = s.Grants.SpendSecret(ctx, kind, tenant.HashSecret(secret), func(g Grant) error {
		if g.Client != client {
			return errInvalidGrant
		}
		return check(g)
	}, Issued{Access: tenant.HashSecret(access), Refresh: tenant.HashSecret(refresh), AccessLife: AccessLife, RefreshLife: RefreshLife})
	if fault.Is(err, fault.NotFound) {
		return Tokens{}, errInvalidGrant
	}
	if err != nil {
		return Tokens{}, err
	}
	return Tokens{Access: access, Refresh: refresh, ExpiresIn: AccessLife}, nil
}
