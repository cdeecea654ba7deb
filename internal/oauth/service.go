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

// Config is what a Service works with. All of it is required.
type Config struct {
	Clients ClientStore
	Grants  GrantStore
	Access  AccessStore
	URL     *url.URL // where users reach the server; see Serves
	Random  io.Reader
	Now     func() time.Time
}

// Service lets users give programs access.
type Service struct {
	Config
	Issuer   string // the server's name
	Resource string // what access is given to
}

// Serves reports whether programs can ask for access at an address: over TLS or
// on the machine itself, and not below a path.
func Serves(u *url.URL) bool {
	return u != nil && (u.Scheme == "https" || u.Scheme == "http" && isLoopback(u)) && (u.Path == "" || u.Path == "/")
}

// NewService makes a Service.
func NewService(c Config) *Service {
	issuer := c.URL.Scheme + "://" + c.URL.Host
	return &Service{Config: c, Issuer: issuer, Resource: issuer + "/mcp"}
}

// Identify returns whom an access token's hash belongs to; Unauthorized.
func (s *Service) Identify(ctx context.Context, h tenant.Hash) (tenant.Identity, error) {
	return s.Access.IdentifyHolder(ctx, tenant.AccessToken, h)
}

// Holder returns whom a code or refresh token belongs to, whether or not it was
// used; Unauthorized.
func (s *Service) Holder(ctx context.Context, kind tenant.TokenKind, secret string) (tenant.Identity, error) {
	if !kind.Is(secret) {
		return tenant.Identity{}, fault.New(fault.Unauthorized, "this is no %s", kind)
	}
	return s.Access.IdentifyHolder(ctx, kind, tenant.HashSecret(secret))
}

// Programs returns those that the user gave access to, the newest first.
func (s *Service) Programs(ctx context.Context, who tenant.Scope) ([]Program, error) {
	return s.Grants.Programs(ctx, who)
}

// Disconnect ends the access of a program at once; NotFound.
func (s *Service) Disconnect(ctx context.Context, who tenant.Scope, id string) error {
	return s.Grants.EndGrant(ctx, who, id)
}

// Revoke ends what a client was given, by any token of it (RFC 7009).
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

// idSize is how long an id is, bytes.
const idSize = 16

// isID reports whether a text can be an id that was made here. What cannot is
// nobody's, and may hold what no store takes.
func isID(s string) bool {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	return err == nil && len(raw) == idSize && len(s) == base64.RawURLEncoding.EncodedLen(idSize) // it skips line breaks
}

// random makes an id that cannot be guessed.
func (s *Service) random() (string, error) {
	raw := make([]byte, idSize)
	if _, err := io.ReadFull(s.Random, raw); err != nil {
		return "", fmt.Errorf("make id: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(raw), nil
}
