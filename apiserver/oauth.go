package apiserver

import (
	"errors"
	"mime"
	"net/http"
	"net/url"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/apiserver/dashboard"
	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/internal/exactjson"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/oauth"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	pathResource = "/.well-known/oauth-protected-resource" + pathMCP
	pathIssuer   = "/.well-known/oauth-authorization-server"
	// The default paths for clients that do not read the metadata.
	pathRegister = "/register"
	pathToken    = "/token"
	pathRevoke   = "/revoke"

	// maxOAuth is the body size limit of these routes, bytes.
	maxOAuth = 64 << 10
)

// serveDocument serves a static JSON document.
func (s *Server) serveDocument(v any) fiber.Handler {
	return func(c *fiber.Ctx) error {
		c.Locals(localRoute, c.Route().Path)
		c.Set(fiber.HeaderCacheControl, "public, max-age=3600")
		return c.JSON(v)
	}
}

// resourceMetadata is the protected resource metadata of /mcp (RFC 9728).
func (s *Server) resourceMetadata() map[string]any {
	return map[string]any{
		"resource": s.OAuth.Resource, "resource_name": "Mnemo", "authorization_servers": []string{s.OAuth.Issuer},
		"bearer_methods_supported": []string{"header"}, "scopes_supported": []string{oauth.Scope},
	}
}

// issuerMetadata is the authorization server metadata (RFC 8414).
func (s *Server) issuerMetadata() map[string]any {
	issuer, none := s.OAuth.Issuer, []string{"none"}
	return map[string]any{
		"issuer": issuer, "authorization_endpoint": issuer + dashboard.PathAuthorize, "token_endpoint": issuer + pathToken,
		"registration_endpoint": issuer + pathRegister, "revocation_endpoint": issuer + pathRevoke,
		"response_types_supported": []string{"code"}, "response_modes_supported": []string{"query"},
		"grant_types_supported":                 []string{"authorization_code", "refresh_token"},
		"token_endpoint_auth_methods_supported": none, "revocation_endpoint_auth_methods_supported": none,
		"code_challenge_methods_supported": []string{"S256"}, "scopes_supported": []string{oauth.Scope},
		"authorization_response_iss_parameter_supported": true,
	}
}

// challenge responds 401 with the location of the resource metadata.
func (s *Server) challenge(c *fiber.Ctx, err error) error {
	a := s.toHTTPError(c.UserContext(), err)
	if s.OAuth != nil {
		value := `Bearer resource_metadata="` + s.OAuth.Issuer + pathResource + `", scope="` + oauth.Scope + `"`
		if c.Get(fiber.HeaderAuthorization) != "" {
			value += `, error="invalid_token"`
		}
		a.GetHeaders().Set(fiber.HeaderWWWAuthenticate, value)
	}
	return s.writeError(c, a)
}

// oauthHandler wraps a handler and writes its errors as OAuth errors (RFC 6749, section 5.2).
func (s *Server) oauthHandler(route string, handle fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		c.Locals(localRoute, route)
		c.Set(fiber.HeaderCacheControl, "no-store")
		err := handle(c)
		if err == nil {
			return nil
		}
		oerr, status := &oauth.Error{}, http.StatusBadRequest
		if errors.As(err, &oerr) {
			if oerr.Code == oauth.InvalidClient {
				status = http.StatusUnauthorized
			}
		} else {
			a := s.toHTTPError(c.UserContext(), err)
			a.SetHeaders(c)
			status = a.GetStatus()
			oerr = &oauth.Error{Code: codeOf(status), Description: a.Message}
		}
		return c.Status(status).JSON(map[string]string{"error": oerr.Code, "error_description": oerr.Description})
	}
}

// codeOf returns the OAuth error code of a status.
func codeOf(status int) string {
	switch status {
	case http.StatusInternalServerError:
		return "server_error"
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return "temporarily_unavailable"
	case http.StatusForbidden:
		return oauth.AccessDenied
	default:
		return oauth.InvalidRequest
	}
}

// registration is the client metadata that is used; other members are ignored.
// Every client is public, because it could not keep a secret from its user.
type registration struct {
	Name          string   `json:"client_name"`
	RedirectURIs  []string `json:"redirect_uris"`
	GrantTypes    []string `json:"grant_types"`
	ResponseTypes []string `json:"response_types"`
}

// registerClient handles POST /register (RFC 7591).
func (s *Server) registerClient(c *fiber.Ctx) error {
	raw, err := httpx.ReadJSON(c, maxOAuth)
	if err != nil {
		return err
	}
	var r registration
	if err := exactjson.Unmarshal(raw, &r); err != nil {
		return &oauth.Error{Code: oauth.InvalidMetadata, Description: "the body must be a JSON object of client metadata (RFC 7591)"}
	}
	client, err := s.OAuth.Register(c.UserContext(), oauth.Registration(r), s.proxies.Address(c))
	if err != nil {
		return err
	}
	return c.Status(http.StatusCreated).JSON(map[string]any{
		"client_id": client.ID, "client_id_issued_at": client.CreatedAt.Unix(), "client_name": client.Name, "redirect_uris": client.RedirectURIs,
		"grant_types": []string{"authorization_code", "refresh_token"}, "response_types": []string{"code"},
		"token_endpoint_auth_method": "none", "scope": oauth.Scope,
	})
}

// issueTokens handles POST /token.
func (s *Server) issueTokens(c *fiber.Ctx) error {
	form, err := readForm(c)
	if err != nil {
		return err
	}
	if err := s.authorizeHolder(c, form); err != nil {
		return err
	}
	var tokens oauth.Tokens
	switch form.Get("grant_type") {
	case "authorization_code":
		tokens, err = s.OAuth.Redeem(c.UserContext(), oauth.CodeInput{
			ClientID: form.Get("client_id"), Code: form.Get("code"),
			RedirectURI: form.Get("redirect_uri"), Verifier: form.Get("code_verifier"), Resources: form["resource"],
		})
	case "refresh_token":
		tokens, err = s.OAuth.Refresh(c.UserContext(), form.Get("client_id"), form.Get("refresh_token"), form["resource"])
	default:
		err = &oauth.Error{Code: oauth.UnsupportedGrant, Description: "grant_type must be authorization_code or refresh_token"}
	}
	if err != nil {
		return err
	}
	return c.JSON(map[string]any{
		"access_token": tokens.Access, "token_type": "Bearer", "expires_in": int(tokens.ExpiresIn.Seconds()),
		"refresh_token": tokens.Refresh, "scope": oauth.Scope,
	})
}

// authorizeHolder applies the rules of /mcp to token requests: they are denied
// while the tenant is suspended, without consuming the code, and a refresh counts
// toward the request rate. Unknown secrets are rejected when they are redeemed.
func (s *Server) authorizeHolder(c *fiber.Ctx, form url.Values) error {
	kind, secret := tenant.Code, form.Get("code")
	if form.Get("grant_type") == "refresh_token" {
		kind, secret = tenant.RefreshToken, form.Get("refresh_token")
	}
	who, err := s.OAuth.Holder(c.UserContext(), kind, secret)
	switch {
	case fault.Is(err, fault.Unauthorized):
		return nil
	case err != nil:
		return err
	case who.Suspended:
		return tenant.ErrSuspended
	case kind == tenant.Code: // the consent page already counted
		return nil
	}
	v, err := s.permit(c.UserContext(), who)
	v.SetHeaders(c)
	return err
}

// revokeTokens handles POST /revoke (RFC 7009); the response is the same for
// every token.
func (s *Server) revokeTokens(c *fiber.Ctx) error {
	form, err := readForm(c)
	if err != nil {
		return err
	}
	if form.Get("token") == "" {
		return &oauth.Error{Code: oauth.InvalidRequest, Description: "token is required"}
	}
	if err := s.OAuth.Revoke(c.UserContext(), form.Get("client_id"), form.Get("token")); err != nil {
		return err
	}
	return c.SendStatus(http.StatusOK)
}

// readForm reads a form in which only resource may be repeated.
func readForm(c *fiber.Ctx) (url.Values, error) {
	kind, _, err := mime.ParseMediaType(c.Get(fiber.HeaderContentType))
	if err != nil || kind != fiber.MIMEApplicationForm {
		return nil, fault.New(fault.Unsupported, "the body must be %s", fiber.MIMEApplicationForm)
	}
	b := httpx.RequestBody(c)
	if b == nil {
		return nil, fault.New(fault.Invalid, "the body is required")
	}
	raw, err := b.ReadAll(maxOAuth)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(raw))
	if err != nil {
		return nil, fault.New(fault.Invalid, "the body must be %s", fiber.MIMEApplicationForm)
	}
	for name, values := range form {
		if len(values) > 1 && name != "resource" {
			return nil, fault.New(fault.Invalid, "parameters must not be repeated")
		}
	}
	return form, nil
}
