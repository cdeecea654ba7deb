package retrieve

import (
	"context"
	"errors"

	"github.com/mnemo-dev/mnemo/internal/breaker"
)

// note records the outcome of a call to a dependency and logs changes of its availability. A refusal is due to the
// request of one user: the dependency is available to the others.
func (e *Engine) note(ctx context.Context, b *breaker.Breaker, call breaker.Call, err error, what string) {
	if IsRefused(err) {
		e.Log.WarnContext(ctx, "dependency refused a text; search is degraded", "dependency", what, "error", err)
		err = nil
	}
	outcome := breaker.Available
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		outcome = breaker.Unknown
	case err != nil:
		outcome = breaker.Unavailable
	}
	switch changed := b.Done(e.Now(), call, outcome); {
	case !changed:
	case err == nil:
		e.Log.InfoContext(ctx, "dependency available", "dependency", what)
	default:
		e.Log.WarnContext(ctx, "dependency unavailable; search is degraded", "dependency", what, "error", err)
	}
}

// collection identifies a collection among all cells.
type collection struct{ cell, name string }

// breakerOf returns the breaker of a dependency, which it creates at its first use.
func breakerOf[K comparable](e *Engine, of map[K]*breaker.Breaker, dependency K) *breaker.Breaker {
	e.mu.Lock()
	defer e.mu.Unlock()
	b := of[dependency]
	if b == nil {
		b = &breaker.Breaker{}
		of[dependency] = b
	}
	return b
}
