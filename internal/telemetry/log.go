package telemetry

import (
	"io"
	"log/slog"
)

// LogConfig selects what is logged and how; kong reads it from flags and
// environment.
type LogConfig struct {
	Level  slog.Level `name:"log-level" env:"MNEMO_LOG_LEVEL" default:"INFO" help:"Least level that is logged: DEBUG, INFO, WARN or ERROR."`
	Format string     `name:"log-format" env:"MNEMO_LOG_FORMAT" enum:"json,text" default:"json" help:"Form of a log line: ${enum}."`
}

// NewLogger returns a logger that writes lines to w.
func NewLogger(w io.Writer, c LogConfig) *slog.Logger {
	options := &slog.HandlerOptions{Level: c.Level}
	if c.Format == "text" {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}
