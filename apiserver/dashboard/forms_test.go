package dashboard

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/oauth"
)

// TestFormPathsLeadToPages: a browser that opens the path of a form is redirected to a page.
func TestFormPathsLeadToPages(t *testing.T) {
	t.Parallel()
	app := fiber.New()
	New(Config{OAuth: &oauth.Service{}}).Register(app)
	routes := app.GetRoutes(true)
	opens := func(path string) bool {
		return slices.ContainsFunc(routes, func(r fiber.Route) bool {
			return r.Method == fiber.MethodGet && fiber.RoutePatternMatch(path, r.Path)
		})
	}
	for _, route := range routes {
		path := strings.ReplaceAll(route.Path, ":id", "1")
		hasPage := func(r fiber.Route) bool { return r.Method == fiber.MethodGet && r.Path == route.Path }
		if route.Method != fiber.MethodPost || slices.ContainsFunc(routes, hasPage) {
			continue
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		r.Header.Set("Accept", "text/html")
		res, err := app.Test(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if to := res.Header.Get("Location"); res.StatusCode != http.StatusSeeOther || !opens(to) {
			t.Errorf("GET %s: status %d to %q, want a redirect to a page", path, res.StatusCode, to)
		}
	}
}
