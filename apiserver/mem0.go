package apiserver

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/apiserver/mem0"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/trace"
)

const (
	pathMem0 = "/mem0"
	// schemeMem0 is the authentication scheme of mem0's clients. Its credential is that of
	// the scheme bearer.
	schemeMem0 = "Token"
)

// addMem0 registers the API of mem0. It is not in /openapi.json: its clients are those of
// mem0, which documents it.
func (s *Server) addMem0() {
	endpoint := &mem0.Endpoint{Config: mem0.Config{Memories: s.Memories, Users: s.Users, ActFor: s.actFor, Decode: httpx.DecodeJSON, Extractions: s.Extractions}}
	for _, r := range endpoint.Routes() {
		s.app.Add(r.Method, pathMem0+r.Path, s.serveMem0(r))
	}
}

// serveMem0 handles a route in the order of the other routes (add): authentication, rate
// limit, scope, body, user of an application key, handler.
func (s *Server) serveMem0(route mem0.Route) fiber.Handler {
	return func(c *fiber.Ctx) error {
		c.Locals(localRoute, pathMem0+route.Path)
		out, err := s.callMem0(c, route)
		if err != nil {
			return s.writeError(c, s.httpError(c.UserContext(), err, mem0.FieldNames))
		}
		return httpx.SendJSON(c, http.StatusOK, out)
	}
}

func (s *Server) callMem0(c *fiber.Ctx, route mem0.Route) (any, error) {
	who, err := s.authorizeMem0(c)
	if err != nil {
		return nil, err
	}
	v, err := s.permit(c.UserContext(), who)
	v.SetHeaders(c)
	if err == nil {
		err = who.Access.Require(route.Access)
	}
	if err != nil {
		return nil, err
	}
	user := c.Get(headerUser)
	ctx, err := withUser(c.UserContext(), who, user)
	if err != nil {
		return nil, err
	}
	setReads(c, route.Access)
	if err := s.begin(ctx, who); err != nil {
		return nil, err
	}
	query, err := url.ParseQuery(string(c.Request().URI().QueryString()))
	if err != nil {
		return nil, fault.New(fault.Invalid, "the query of the URL must be percent-encoded")
	}
	var body []byte
	if route.Body {
		httpx.CountBody(c, tenant.MemoryUseOf(ctx))
		if body, err = httpx.ReadJSON(c, defaultBody); err != nil {
			return nil, err
		}
	}
	return route.Serve(tenant.WithActor(ctx, who.Actor), mem0.Request{
		Who: who, User: user, Param: func(name string) string { return c.Params(name) }, Query: query, Body: body,
		Degraded: func() { c.Set(headerDegraded, degradedVector) },
	})
}

// authorizeMem0 returns the identity of the request's credential.
func (s *Server) authorizeMem0(c *fiber.Ctx) (tenant.Identity, error) {
	header := c.Get(fiber.HeaderAuthorization)
	if scheme, token, _ := strings.Cut(header, " "); strings.EqualFold(scheme, schemeMem0) {
		header = bearer + " " + token
	}
	ctx, end := trace.Begin(c.UserContext(), trace.Auth)
	defer end()
	who, err := s.authorize(ctx, header, false)
	if err == nil {
		s.keepOrigin(c, who)
	}
	return who, err
}

// isMem0 reports whether a path belongs to the API of mem0.
func isMem0(path string) bool { return strings.HasPrefix(path, pathMem0+"/") }

// mem0Error is the body of an error response of the API of mem0.
type mem0Error struct {
	Detail    string `json:"detail"`
	Code      string `json:"code"`
	RequestID string `json:"requestId,omitempty"`
}

// entityName returns the part of a path before the name of an entity of mem0, and the
// encoded name, which may contain a slash.
func entityName(path []byte) (before, name []byte, ok bool) {
	for _, version := range []string{"/v1", "/v2"} {
		prefix := []byte(pathMem0 + version + "/entities/")
		item, found := bytes.CutPrefix(path, prefix)
		kind, name, named := bytes.Cut(item, []byte("/"))
		if found && named && len(name) > 0 {
			return bytes.Join([][]byte{prefix, kind, []byte("/")}, nil), bytes.TrimSuffix(name, []byte("/")), true
		}
	}
	return nil, nil, false
}
