package apiserver

import (
	"maps"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// sharedResponse is an error response that routes have in common.
type sharedResponse struct{ name, description, example string }

// errorResponses are the common error responses of routes with a token, by status.
var errorResponses = map[int]sharedResponse{
	http.StatusUnauthorized: {"Unauthorized", "The token is missing, unknown or revoked.",
		"a valid token is required: Authorization: Bearer <API_TOKEN>"},
	http.StatusForbidden: {"Forbidden", "The tenant is suspended, or a quota is exceeded.",
		tenant.ErrSuspended.Error()},
	http.StatusRequestTimeout: {"TooSlow", "The request timed out.",
		httpx.RequestTimeout},
	http.StatusRequestEntityTooLarge: {"TooLarge", "The body is too large.",
		"the body must be at most 1048576 bytes"},
	http.StatusUnsupportedMediaType: {"UnsupportedType", "The media type of the body is not supported.",
		"the body must be JSON (Content-Type: application/json), not compressed"},
	http.StatusTooManyRequests: {"TooManyRequests", "The tenant exceeded its request rate limit.",
		"request rate limit exceeded (600 per minute); retry in 12 s"},
	http.StatusRequestHeaderFieldsTooLarge: {"HeadersTooLarge", "The URL and headers are too long.",
		httpx.HeadersTooLarge},
	http.StatusInternalServerError: {"Internal", "Internal error; the server log contains the requestId.",
		httpx.InternalError},
	http.StatusServiceUnavailable: {"Unavailable", "A dependency is unavailable; retry later.",
		tenant.DatabaseUnavailable},
}

// commonErrorExamples are example messages for routes that define none.
var commonErrorExamples = map[int]string{
	http.StatusBadRequest: "text is required and must not be blank",
	http.StatusNotFound:   "memory not found",
	http.StatusConflict:   tenant.ErrKeyReused.Error(),
}

// sharedResponses returns the common error responses as OpenAPI components.
func sharedResponses(schemas huma.Registry) map[string]*huma.Response {
	out := map[string]*huma.Response{}
	for status, a := range errorResponses {
		example := map[string]any{"error": a.example, "code": httpx.StatusCode(status)}
		if status == http.StatusInternalServerError {
			example["requestId"] = "5e0c8b1e-6b1f-4a35-9d4e-0f5a4b1c7d22"
		}
		headers := map[string]*huma.Header{}
		for _, name := range headersOf(status, true) {
			headers[name] = headerRef(name)
		}
		out[a.name] = &huma.Response{
			Description: a.description, Headers: headers,
			Content: map[string]*huma.MediaType{fiber.MIMEApplicationJSON: {
				Schema: schemas.Schema(reflect.TypeFor[httpx.Error](), true, ""), Example: example,
			}},
		}
	}
	return out
}

// withoutRate returns a copy without the rate limit headers, for routes without a token.
func withoutRate(r *huma.Response) *huma.Response {
	out := *r
	out.Headers = maps.Clone(r.Headers)
	for _, name := range rateHeaders {
		delete(out.Headers, name)
	}
	return &out
}

var rateHeaders = []string{httpx.HeaderRateLimit, httpx.HeaderRateRemaining, httpx.HeaderRateReset}

// headersOf returns the names of the headers of responses with a status, on a
// route with or without a token.
func headersOf(status int, token bool) []string {
	names := []string{httpx.HeaderRequestID}
	switch status {
	case http.StatusUnauthorized:
		names = append(names, fiber.HeaderWWWAuthenticate)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		names = append(names, fiber.HeaderRetryAfter)
	}
	if token && status != http.StatusUnauthorized && status != http.StatusRequestHeaderFieldsTooLarge {
		names = append(names, rateHeaders...)
	}
	return names
}

// sharedHeaders returns the response headers as OpenAPI components.
func sharedHeaders() map[string]*huma.Header {
	text := func(description string) *huma.Header {
		return &huma.Header{Description: description, Schema: &huma.Schema{Type: huma.TypeString}}
	}
	least := 0.0
	number := func(description string) *huma.Header {
		return &huma.Header{Description: description, Schema: &huma.Schema{Type: huma.TypeInteger, Minimum: &least}}
	}
	return map[string]*huma.Header{
		httpx.HeaderRequestID:       text("Identifies the request in the server log."),
		fiber.HeaderWWWAuthenticate: text("The authentication scheme, Bearer."),
		fiber.HeaderRetryAfter:      number("Seconds to wait before retrying."),
		httpx.HeaderRateLimit:       number("Requests per minute allowed for the tenant. The RateLimit headers are on every response to a counted request."),
		httpx.HeaderRateRemaining:   number("Approximate number of requests left in this minute."),
		httpx.HeaderRateReset:       number("Seconds until the next minute begins."),
	}
}

func headerRef(name string) *huma.Header { return &huma.Header{Ref: "#/components/headers/" + name} }
