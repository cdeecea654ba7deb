package jobs

import (
	"context"
	"log/slog"
)

// atLeast passes on what is logged at a level or above: River counts its jobs
// every few seconds, as our metrics do.
type atLeast struct {
	level slog.Level
	slog.Handler
}

// Enabled reports whether the level is passed on.
func (h atLeast) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= h.level && h.Handler.Enabled(ctx, level)
}

// WithAttrs keeps the level.
func (h atLeast) WithAttrs(attrs []slog.Attr) slog.Handler {
	return atLeast{h.level, h.Handler.WithAttrs(attrs)}
}

// WithGroup keeps the level.
func (h atLeast) WithGroup(name string) slog.Handler {
	return atLeast{h.level, h.Handler.WithGroup(name)}
}
