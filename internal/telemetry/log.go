package telemetry

import (
	"io"
	"log/slog"
)

// LogConfig configures logging from flags and the environment.
type LogConfig struct {
	Level  slog.Level `name:"log-level" env:"MNEMO_LOG_LEVEL" default:"INFO" help:"Minimum log level: DEBUG, INFO, WARN or ERROR."`
	Format string     `name:"log-format" env:"MNEMO_LOG_FORMAT" enum:"json,text" default:"json" help:"Log format: ${enum}."`
}

// NewLogger returns a logger that writes lines to w.
func NewLogger(w io.Writer, c LogConfig) *slog.Logger {
	options := &slog.HandlerOptions{Level: c.Level}
	if c.Format == "text" {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}
