package telemetry

import (
	"cmp"
	"context"
	"log/slog"
	"time"
)

// Watch calls the check of each dependency periodically until the context ends
// and records the result. It logs when a dependency becomes unavailable, with
// the reason, and when it recovers.
func (m *Metrics) Watch(ctx context.Context, interval time.Duration, checks map[string]func(context.Context) error, log *slog.Logger) {
	interval = cmp.Or(interval, 15*time.Second)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	unavailable := map[string]bool{}
	for {
		for name, check := range checks {
			limited, cancel := context.WithTimeout(ctx, interval/2)
			err := check(limited)
			cancel()
			if ctx.Err() != nil {
				return
			}
			m.SetDependencyUp(name, err == nil)
			switch {
			case err != nil && !unavailable[name]:
				log.WarnContext(ctx, "dependency unavailable", "dependency", name, "error", err)
			case err == nil && unavailable[name]:
				log.InfoContext(ctx, "dependency available again", "dependency", name)
			}
			unavailable[name] = err != nil
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
