package apiserver

import (
	"context"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// maxUserRequests is the number of requests of a user that a replica works on at a time, so that no user holds
	// all connections to PostgreSQL or the embedding model. maxUserBulk is that of requests with a large body.
	maxUserRequests = 8
	maxUserBulk     = 2
	// bulkBody is the size above which a body is large, bytes.
	bulkBody = 64 << 10
)

// turnKey is a user, or a user of an application.
type turnKey struct {
	tenant.Scope

	acting string
}

// work is what a request holds while the server works on it.
type work struct {
	bulk bool
	ends []func()
}

func (w *work) end() {
	for _, end := range w.ends {
		end()
	}
}

type workKey struct{}

// isBulk reports whether a request has a large body, or one of unknown size. Uploads are not: they are only stored.
func isBulk(c *fiber.Ctx) bool {
	n := c.Request().Header.ContentLength()
	upload := strings.HasPrefix(c.Get(fiber.HeaderContentType), fiber.MIMEMultipartForm)
	return (n > bulkBody || n == -1) && !upload
}

// begin waits until the server may work on a request of an authenticated user, and counts its memory for the user.
func (s *Server) begin(ctx context.Context, who tenant.Identity) error {
	w, ok := ctx.Value(workKey{}).(*work)
	if !ok {
		return nil
	}
	tenant.MemoryUseOf(ctx).SetUser(who.Scope)
	user, _ := ctx.Value(actingKey{}).(string)
	limits := []*httpx.Turns[turnKey]{s.turns}
	if w.bulk {
		limits = []*httpx.Turns[turnKey]{s.bulkTurns, s.turns}
	}
	for _, t := range limits {
		end, err := t.Take(ctx, turnKey{who.Scope, user})
		if err != nil {
			return err
		}
		w.ends = append(w.ends, end)
	}
	return nil
}
