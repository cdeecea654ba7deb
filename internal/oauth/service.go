package oauth

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Config contains the dependencies of a Service. All fields but Cell are required.
type Config struct {
	Clients ClientStore
	Grants  GrantStore
	Access  AccessStore
	URL     *url.URL            // of the server, as users reach it; see Serves
	Cell    tenant.DatabaseCell // of the stores
	Random  io.Reader
	Now     func() time.Time
}

// Service manages the access that users grant to apps.
type Service struct {
	Config
	Issuer   string // issuer identifier of the server
	Resource string // identifier of the protected resource
}

// Serves reports whether OAuth is available at an address: with TLS or on a
// loopback host, and not below a path.
func Serves(u *url.URL) bool {
	return u != nil && (u.Scheme == "https" || u.Scheme == "http" && isLoopback(u)) && (u.Path == "" || u.Path == "/")
}

// NewService returns a Service.
func NewService(c Config) *Service {
	issuer := c.URL.Scheme + "://" + c.URL.Host
	return &Service{Config: c, Issuer: issuer, Resource: issuer + "/mcp"}
}

// Identify returns the identity of an access token's hash; Unauthorized.
func (s *Service) Identify(ctx context.Context, h tenant.Hash) (tenant.Identity, error) {
	return s.Access.IdentifyHolder(ctx, tenant.AccessToken, h)
}

// Holder returns the identity of a code or refresh token, used or not;
// Unauthorized.
func (s *Service) Holder(ctx context.Context, kind tenant.TokenKind, secret string) (tenant.Identity, error) {
	if !kind.Is(secret) {
		return tenant.Identity{}, fault.New(fault.Unauthorized, "invalid %s token", kind)
	}
	return s.Access.IdentifyHolder(ctx, kind, tenant.HashSecret(secret))
}

// ConnectedApps returns the clients with access to the user's data, newest first.
func (s *Service) ConnectedApps(ctx context.Context, who tenant.Scope) ([]ConnectedApp, error) {
	return s.Grants.ConnectedApps(ctx, who)
}

// Disconnect ends the access of a client immediately; NotFound.
func (s *Service) Disconnect(ctx context.Context, who tenant.Scope, id string) error {
	return s.Grants.EndGrant(ctx, who, id)
}

// Revoke ends the grant of a token (RFC 7009).
func (s *Service) Revoke(ctx context.Context, client, token string) error {
	if _, err := s.client(ctx, client); err != nil {
		return err
	}
	for _, kind := range []tenant.TokenKind{tenant.AccessToken, tenant.RefreshToken} {
		if kind.Is(token) {
			return s.Grants.RevokeGrant(ctx, client, kind, tenant.HashSecret(token))
		}
	}
	return nil
}

// idSize is the number of bytes of an id.
const idSize = 16

// isID reports whether a text has the format of a generated id. Others cannot
// exist and may contain characters that stores reject.
func isID(s string) bool {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	return err == nil && len(raw) == idSize && len(s) == base64.RawURLEncoding.EncodedLen(idSize) // the decoder ignores line breaks
}

// random returns an unguessable id.
func (s *Service) newID() (string, error) {
	raw := make([]byte, idSize)
	if _, err := io.ReadFull(s.Random, raw); err != nil {
		return "", fmt.Errorf("create id: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(raw), nil
}
