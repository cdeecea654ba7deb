package apiserver

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// RequestCounter counts requests for billing. metering.Journal implements it.
type RequestCounter interface {
	// Add counts a request of a tenant. A request whose response is sent was counted
	// before.
	Add(t tenant.ID, at time.Time) error
}

// metered is the tenant that is billed for a request; nil until the rate limiter has
// admitted it.
type metered struct{ tenant atomic.Pointer[tenant.ID] }

// meteredKey is the context key of *metered.
type meteredKey struct{}

func withMetered(ctx context.Context) (context.Context, *metered) {
	m := &metered{}
	return context.WithValue(ctx, meteredKey{}, m), m
}

// setMetered records the tenant of a request that the rate limiter admitted.
func setMetered(ctx context.Context, id tenant.ID) {
	if m, ok := ctx.Value(meteredKey{}).(*metered); ok {
		m.tenant.Store(&id)
	}
}

// countRequest counts a request unless its response is an error. The response is sent
// afterwards. A request is not failed because it cannot be counted.
func (s *Server) countRequest(ctx context.Context, c *fiber.Ctx, m *metered) {
	id := m.tenant.Load()
	if s.Requests == nil || id == nil || c.Response().StatusCode() >= http.StatusBadRequest {
		return
	}
	if err := s.Requests.Add(*id, time.Now()); err != nil {
		s.Log.LogAttrs(ctx, slog.LevelError, "a request was not counted for billing", slog.Any("error", err))
	}
}
