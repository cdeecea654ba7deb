package apiserver

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

// isQuery matches the place of a query in the cases of a route.
var isQuery = regexp.MustCompile(`("query":"|[?&](query|q)=)\$q`)

// authenticates matches the spans of every request: its own, and those that find its user.
var authenticates = regexp.MustCompile(`^(GET|POST) /|^auth$|name: GetSession `)

// TestQueriesOverTheLimitAreRefusedBeforeWork sends every request that has a query with one that is a byte longer than
// allowed. It must be refused before anything is embedded or searched.
func TestQueriesOverTheLimitAreRefusedBeforeWork(t *testing.T) {
	x := newIsolationServer(t)
	owner := x.participant(t, "longq", "alice", true)
	longest := maps.Clone(owner.secrets)
	longest["$q"] = strings.Repeat("q", retrieve.MaxQuery)
	longer := maps.Clone(owner.secrets)
	longer["$q"] = longest["$q"] + "q"
	searched := map[string]bool{}
	for _, route := range x.everyRoute(t, owner) {
		for _, r := range isolationCases[route] {
			if !isQuery.MatchString(r.path + r.body) {
				continue
			}
			searched[route] = true
			if got := x.send(t, owner, route, r, longest); got.status != 200 || strings.Contains(got.body, "must be at most") {
				t.Errorf("%s %s%s with the longest query: %d %.300s", route, r.path, r.body, got.status, got.body)
			}
			got := x.send(t, owner, route, r, longer)
			if !strings.Contains(got.raw, "must be at most 8192 bytes of UTF-8, not 8193") {
				t.Errorf("%s %s%s with a longer query: %d %.300s, want an error that names the limit", route, r.path, r.body, got.status, got.body)
			}
			if i := slices.IndexFunc(got.work, func(w string) bool { return !authenticates.MatchString(w) }); i >= 0 {
				t.Errorf("%s %s%s with a longer query does work: %s", route, r.path, r.body, got.work[i])
			}
		}
	}
	for path, item := range x.api.OpenAPI().Paths {
		for _, op := range httpx.Operations(item) {
			if route := op.Method + " " + path; hasQuery(x.api.OpenAPI().Components.Schemas, op) && !searched[route] {
				t.Errorf("no case of %s has a query", route)
			}
		}
	}
}

// hasQuery reports whether an operation has a parameter or a member of its body with the text of a query.
func hasQuery(all huma.Registry, op *huma.Operation) bool {
	if slices.ContainsFunc(op.Parameters, func(p *huma.Param) bool { return p.Name == "query" }) {
		return true
	}
	if op.RequestBody == nil || op.RequestBody.Content[fiber.MIMEApplicationJSON] == nil {
		return false
	}
	s := op.RequestBody.Content[fiber.MIMEApplicationJSON].Schema
	if s.Ref != "" {
		s = all.SchemaFromRef(s.Ref)
	}
	return s.Properties["query"] != nil
}
