package httpx

import (
	"math"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// rejectUnknownMethods answers non-standard methods before Fiber does, because
// Fiber would keep the connection open with an unread body.
func rejectUnknownMethods(next fasthttp.RequestHandler, allowed func(path string) string) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		if slices.Contains(fiber.DefaultMethods, string(ctx.Method())) {
			next(ctx)
			return
		}
		closeConnection(ctx)
		ctx.SetStatusCode(fiber.StatusMethodNotAllowed)
		ctx.SetContentType(fiber.MIMEApplicationJSON)
		ctx.Response.Header.Set(HeaderRequestID, NewRequestID(""))
		if allowed := allowed(string(ctx.Path())); allowed != "" {
			ctx.Response.Header.Set(fiber.HeaderAllow, allowed)
		}
		ctx.SetBodyString(`{"error":"` + methodNotAllowed + `"}`)
	}
}

// AllowedMethods returns the Allow header of a path: the methods of the most
// specific matching pattern. Fiber would list the methods of all matches.
func AllowedMethods(patterns map[string]*huma.PathItem, path string) string {
	var best []string
	parameters := math.MaxInt
	for pattern, item := range patterns {
		n, ok := matchPattern(pattern, path)
		if !ok || n >= parameters {
			continue
		}
		best, parameters = nil, n
		for _, op := range Operations(item) {
			best = append(best, op.Method)
		}
	}
	return strings.Join(best, ", ")
}

// matchPattern reports whether a path matches a pattern, and with how many parameters.
func matchPattern(pattern, path string) (parameters int, ok bool) {
	segments := strings.Split(path, "/")
	parts := strings.Split(pattern, "/")
	if len(segments) != len(parts) {
		return 0, false
	}
	for i, part := range parts {
		switch {
		case strings.HasPrefix(part, "{") && segments[i] != "":
			parameters++
		case part != segments[i]:
			return 0, false
		}
	}
	return parameters, true
}

// closeAfter closes the connection after a request that cannot be parsed: the
// start of the next request is unknown.
func closeAfter(respond func(*fasthttp.RequestCtx, error)) func(*fasthttp.RequestCtx, error) {
	return func(ctx *fasthttp.RequestCtx, err error) {
		closeConnection(ctx)
		respond(ctx, err)
	}
}

// Operations returns the operations of a path.
func Operations(item *huma.PathItem) []*huma.Operation {
	all := []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete}
	return slices.DeleteFunc(all, func(op *huma.Operation) bool { return op == nil })
}
