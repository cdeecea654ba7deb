package jobs

import (
	"context"
	"log/slog"
)

// atLeast drops records below a level. River logs job counts every few seconds, which
// metrics already report.
type atLeast struct {
	level slog.Level
	slog.Handler
}

// Enabled reports whether records of the level are kept.
func (h atLeast) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= h.level && h.Handler.Enabled(ctx, level)
}

// WithAttrs returns a handler with the same level.
func (h atLeast) WithAttrs(attrs []slog.Attr) slog.Handler {
	return atLeast{h.level, h.Handler.WithAttrs(attrs)}
}

// WithGroup returns a handler with the same level.
func (h atLeast) WithGroup(name string) slog.Handler {
	return atLeast{h.level, h.Handler.WithGroup(name)}
}
