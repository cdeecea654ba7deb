package apiserver

import (
	"context"
	"net/http"
	"time"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const tagTokens = "Tokens"

// defaultScopes are those of a token that is created without any.
var defaultScopes = []string{"read", "write"}

// TokenBody is a token in responses. It is exported, because createdTokenBody embeds it.
type TokenBody struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Scopes      []string `json:"scopes" doc:"read, write and admin: see the request to create a token."`
	Fingerprint string   `json:"fingerprint" doc:"The first 12 hexadecimal digits of the token's SHA-256, as in audit records."`
	CreatedAt   string   `json:"createdAt" format:"date-time"`
	LastUsedAt  string   `json:"lastUsedAt,omitempty" format:"date-time" doc:"Accurate to a minute; absent if never used."`
	ExpiresAt   string   `json:"expiresAt,omitempty" format:"date-time" doc:"Absent if it does not expire."`
}

func tokenOf(t tenant.UserToken) TokenBody {
	return TokenBody{
		ID: t.ID, Name: t.Name, Scopes: t.Access.Names(), Fingerprint: t.Fingerprint, CreatedAt: chat.Stamp(t.CreatedAt),
		LastUsedAt: stampOrEmpty(t.LastUsedAt), ExpiresAt: stampOrEmpty(t.ExpiresAt),
	}
}

func stampOrEmpty(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return chat.Stamp(t)
}

const exampleToken = `"id":"0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e08","name":"Laptop","scopes":["read","write"],"fingerprint":"4be1ac03f6d2",` +
	`"createdAt":"2026-05-03T09:00:00.000Z"`

type listTokensOutput struct{ Body tokensBody }

type tokensBody struct {
	Tokens []TokenBody `json:"tokens"`
}

var docListTokens = doc{
	id: "listTokens", tag: tagTokens, summary: "List the tokens that the user created", access: tenant.AccessTokens,
	description: "Valid tokens, newest first. The token that the administrator issued, or that replaced it in the dashboard, is not among them. No token can be read again.",
	response:    example(`{"tokens":[{` + exampleToken + `,"lastUsedAt":"2026-05-03T09:01:00.000Z","expiresAt":"2126-11-03T09:00:00.000Z"}]}`),
	links:       map[string]string{"revokeToken.tokenId": "/tokens/0/id"}, //nolint:gosec // a JSON pointer
}

func (s *Server) listTokens(ctx context.Context, who tenant.Identity, _ *struct{}) (*listTokensOutput, error) {
	list, err := s.UserTokens.UserTokens(ctx, who.Scope)
	if err != nil {
		return nil, err
	}
	out := &listTokensOutput{Body: tokensBody{Tokens: make([]TokenBody, len(list))}}
	for i, t := range list {
		out.Body.Tokens[i] = tokenOf(t)
	}
	return out, nil
}

type createTokenInput struct {
	Body struct {
		Name      string   `json:"name" minLength:"1" maxLength:"100" doc:"1 to 100 characters, unique among the user's tokens ignoring case."`
		Scopes    []string `json:"scopes,omitempty" enum:"read,write,admin" doc:"read: read, search and export data. write: create, change and delete data. admin: manage tokens. Defaults to read and write."`
		ExpiresAt *string  `json:"expiresAt,omitempty" format:"date-time" doc:"In the future. Without it, the token does not expire."`
	} `nameHint:"CreateTokenRequest"`
}

type createTokenOutput struct {
	CacheControl string `header:"Cache-Control"`
	Location     string `header:"Location" doc:"The path of the new token."`
	Body         createdTokenBody
}

type createdTokenBody struct {
	TokenBody
	Token string `json:"token" doc:"The token. It is not shown again."`
}

var docCreateToken = doc{
	id: "createToken", tag: tagTokens, summary: "Create a token", access: tenant.AccessTokens,
	description: "The new token acts for the same user. It has no scope that the token of the request lacks, and expires no later: see `expiresAt` in the response. " +
		"It stays valid when that token is revoked: revoke it as well. A user has at most 50 valid tokens. The route supports no Idempotency-Key, because the response is not stored. If the response is lost, " +
		"a retry returns 409: revoke that token and create another.",
	request:  example(`{"name":"Laptop","scopes":["read","write"],"expiresAt":"2126-11-03T09:00:00Z"}`),
	response: example(`{` + exampleToken + `,"expiresAt":"2126-11-03T09:00:00.000Z","token":"mn_EXAMPLE"}`),
	errors:   []int{http.StatusConflict},
	links:    map[string]string{"revokeToken.tokenId": "/id"},
}

func (s *Server) createToken(ctx context.Context, who tenant.Identity, in *createTokenInput) (*createTokenOutput, error) {
	var p params
	expires := p.from("expiresAt", value(in.Body.ExpiresAt, ""))
	if in.Body.ExpiresAt != nil && *in.Body.ExpiresAt == "" {
		p.Add("expiresAt", "must be a time in the future, or absent")
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	scopes := in.Body.Scopes
	if scopes == nil {
		scopes = defaultScopes
	}
	created, secret, err := tenant.UserTokens{Store: s.UserTokens, Cell: s.DatabaseCell}.Create(ctx, who, tenant.TokenInput{Name: in.Body.Name, Scopes: scopes, ExpiresAt: expires})
	if err != nil {
		return nil, err
	}
	return &createTokenOutput{
		CacheControl: "no-store", Location: "/api/tokens/" + created.ID, Body: createdTokenBody{TokenBody: tokenOf(created), Token: secret},
	}, nil
}

type tokenIDInput struct {
	TokenID string `path:"tokenId" doc:"The token's id." example:"0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e08"`
}

type revokeTokenOutput struct{ Body revokedTokenBody }

type revokedTokenBody struct {
	Message string `json:"message"`
}

var docRevokeToken = doc{
	id: "revokeToken", tag: tagTokens, summary: "Revoke a token", access: tenant.AccessTokens,
	description: "The replica that responds rejects the token from then on. The others are notified, and reject it usually within a second, at most 30 seconds later. A token can revoke itself.",
	response:    example(`{"message":"Token revoked"}`),
	errors:      []int{http.StatusNotFound},
}

func (s *Server) revokeToken(ctx context.Context, who tenant.Identity, in *tokenIDInput) (*revokeTokenOutput, error) {
	if err := s.UserTokens.RevokeUserToken(ctx, who.Scope, in.TokenID); err != nil {
		return nil, err
	}
	return &revokeTokenOutput{Body: revokedTokenBody{Message: "Token revoked"}}, nil
}
