package apiserver

import (
	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// maxMemory and maxUserMemory are the most bytes of JSON bodies, of texts that are read to make responses, and
// of responses that are not sent yet: of all requests and of one user's. Decoding and encoding need up to
// five times as much. A user's share has room for one body of the largest size.
const (
	maxMemory     = 128 << 20
	maxUserMemory = 64 << 20
)

func newMemory() *tenant.Budget { return tenant.NewBudget(maxMemory, maxUserMemory) }

// holdResponse counts the body of a response until it is sent, instead of what was read to make it, and reports
// whether it does: otherwise the request is finished. If there is no room for the response of a request that only
// reads, an error replaces it. Large responses to clients without an identity are constants, such as the contract, of
// which there is one copy: counting them would let a client that does not read keep them from others.
func (s *Server) holdResponse(c *fiber.Ctx, use *tenant.MemoryUse) bool {
	res := c.Response()
	if use.Anonymous() || res.IsBodyStream() || len(res.Body()) <= tenant.FreeMemory { // a stream is sent in blocks
		return false
	}
	body := res.Body()
	if err := use.Set(int64(len(body)), !onlyReads(c)); err != nil {
		_ = s.handleError(c, err)
		return false
	}
	httpx.HoldBody(res, use.Release)
	return true
}

// setReads records that the request changes nothing.
func setReads(c *fiber.Ctx, required tenant.Access) {
	c.Locals(localReads, required == tenant.AccessRead)
}

func onlyReads(c *fiber.Ctx) bool {
	reads, ok := c.Locals(localReads).(bool)
	return !ok && c.Method() == fiber.MethodGet || reads
}
