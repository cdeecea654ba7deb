package httpx

import (
	"net/http"

	"github.com/gofiber/fiber/v2"
)

// preflightAge is how long browsers may cache the response to a preflight, seconds.
const preflightAge = "600"

// CORS is what scripts of an allowed origin may do. Each field is a list for a header. Scripts
// send tokens themselves, so credentials are never allowed.
type CORS struct {
	Methods string
	Headers string // of requests
	Exposed string // headers of responses
}

// Allow sets the headers of the response to a script of an allowed origin, and reports
// whether the request is a preflight, which it has answered.
func (r CORS) Allow(c *fiber.Ctx, origin string) (answered bool) {
	c.Set(fiber.HeaderAccessControlAllowOrigin, origin)
	if c.Method() != http.MethodOptions || c.Get(fiber.HeaderAccessControlRequestMethod) == "" {
		c.Set(fiber.HeaderAccessControlExposeHeaders, r.Exposed)
		return false
	}
	c.Vary(fiber.HeaderAccessControlRequestMethod, fiber.HeaderAccessControlRequestHeaders)
	c.Set(fiber.HeaderAccessControlAllowMethods, r.Methods)
	c.Set(fiber.HeaderAccessControlAllowHeaders, r.Headers)
	c.Set(fiber.HeaderAccessControlMaxAge, preflightAge)
	c.Status(http.StatusNoContent)
	return true
}

// WithdrawOrigin removes the permission that Allow gave to a script.
func WithdrawOrigin(c *fiber.Ctx) {
	c.Response().Header.Del(fiber.HeaderAccessControlAllowOrigin)
	c.Response().Header.Del(fiber.HeaderAccessControlExposeHeaders)
}
