package telemetry

import (
	"context"
	"log/slog"
	"time"
)

// watchInterval is the interval between checks of the dependencies. Each check has half of it, so an interrupted connection is visible
// within 15 s unless other checks wait, too. The components of Milvus lose their sessions after 20 to 30 s, and Milvus then exits.
const watchInterval = 10 * time.Second

// Watch calls the check of each dependency periodically until the context ends
// and records the result. It logs when a dependency becomes unavailable, with
// the reason, and when it recovers.
func (m *Metrics) Watch(ctx context.Context, checks map[string]func(context.Context) error, log *slog.Logger) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	unavailable := map[string]bool{}
	for {
		for name, check := range checks {
			limited, cancel := context.WithTimeout(ctx, watchInterval/2)
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
