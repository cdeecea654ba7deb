package apiserver

import (
	"maps"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"
)

// sharedAnswer is a refusal that routes give alike.
type sharedAnswer struct{ name, description, example string }

// answers are the refusals that every route with a token gives alike, by status.
var answers = map[int]sharedAnswer{
	http.StatusUnauthorized: {"Unauthorized", "The token is missing, unknown or revoked.",
		"a valid token is needed: Authorization: Bearer <API_TOKEN>"},
	http.StatusForbidden: {"Forbidden", "The tenant is suspended, or a quota is used up.",
		"this tenant is suspended; its data is kept, ask whoever operates it"},
	http.StatusRequestTimeout: {"TooSlow", "The body stopped coming.",
		tooSlow},
	http.StatusRequestEntityTooLarge: {"TooLarge", "The body is too large.",
		"the body must be at most 1048576 bytes"},
	http.StatusUnsupportedMediaType: {"UnsupportedType", "The body is not of a type that this route takes.",
		"the body must be JSON (Content-Type: application/json), not compressed"},
	http.StatusTooManyRequests: {"TooManyRequests", "The tenant's requests of this minute are used up.",
		"this tenant's 600 requests per minute are used up; try again in 12 s"},
	http.StatusRequestHeaderFieldsTooLarge: {"HeadersTooLarge", "The address and headers are too long.",
		headersTooLarge},
	http.StatusInternalServerError: {"Internal", "Something went wrong in the server; its log has the requestId.",
		unexpectedAnswer},
	http.StatusServiceUnavailable: {"Unavailable", "A store is away: nothing was done, try again.",
		"the database is away; try again"},
}

// commonRefusals are examples for routes that give none of their own.
var commonRefusals = map[int]string{
	http.StatusBadRequest: "text is required and must not be blank",
	http.StatusNotFound:   "memory not found",
	http.StatusConflict:   "this idempotency key was used for another request within the last 24 hours; use a new key for a new request",
}

// sharedAnswers are the answers as components of the OpenAPI file.
func sharedAnswers(schemas huma.Registry) map[string]*huma.Response {
	out := map[string]*huma.Response{}
	for status, a := range answers {
		example := map[string]any{"error": a.example}
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
				Schema: schemas.Schema(reflect.TypeFor[Error](), true, ""), Example: example,
			}},
		}
	}
	return out
}

// withoutRate is a shared answer as a route without a token gives it.
func withoutRate(r *huma.Response) *huma.Response {
	out := *r
	out.Headers = maps.Clone(r.Headers)
	for _, name := range rateHeaders {
		delete(out.Headers, name)
	}
	return &out
}

var rateHeaders = []string{headerRateLimit, headerRateRemaining, headerRateReset}

// headersOf names the headers that answers with a status carry, on a route
// with a token or without.
func headersOf(status int, token bool) []string {
	names := []string{headerRequestID}
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

// sharedHeaders are the headers as components of the OpenAPI file.
func sharedHeaders() map[string]*huma.Header {
	text := func(description string) *huma.Header {
		return &huma.Header{Description: description, Schema: &huma.Schema{Type: huma.TypeString}}
	}
	least := 0.0
	number := func(description string) *huma.Header {
		return &huma.Header{Description: description, Schema: &huma.Schema{Type: huma.TypeInteger, Minimum: &least}}
	}
	return map[string]*huma.Header{
		headerRequestID:             text("Names the request in the server's log."),
		fiber.HeaderWWWAuthenticate: text("Bearer."),
		fiber.HeaderRetryAfter:      number("Seconds to wait before trying again."),
		headerRateLimit:             number("Requests the tenant may make each minute. This and the next two are on every answer to a request that was counted."),
		headerRateRemaining:         number("Requests left of this minute, about."),
		headerRateReset:             number("Seconds until the next minute begins."),
	}
}

func headerRef(name string) *huma.Header { return &huma.Header{Ref: "#/components/headers/" + name} }
