package telemetry

import (
	"context"
	"errors"

	"github.com/mnemo-dev/mnemo/internal/chat"
)

// Imports counts what imports come to.
func (m *Metrics) Imports(inner chat.ImportFiles) chat.ImportFiles { return &imports{inner, m} }

type imports struct {
	chat.ImportFiles
	metrics *Metrics
}

// Land implements chat.ImportFiles.
func (i *imports) Land(ctx context.Context, run chat.ImportRun, b chat.Batch, t chat.Tools) error {
	err := i.ImportFiles.Land(ctx, run, b, t)
	if err != nil {
		return err
	}
	for _, e := range b.Entries {
		outcome := string(e.Outcome)
		if outcome == "" {
			outcome = stored
		}
		i.metrics.landed.WithLabelValues(outcome).Inc()
	}
	return nil
}

// Finish implements chat.ImportFiles.
func (i *imports) Finish(ctx context.Context, run chat.ImportRun, failure string, warnings []string) error {
	err := i.ImportFiles.Finish(ctx, run, failure, warnings)
	switch {
	case errors.Is(err, chat.ErrLost): // its new worker says
	case err != nil: // it is tried again
	case failure != "":
		i.metrics.imports.WithLabelValues("failed").Inc()
	default:
		i.metrics.imports.WithLabelValues("done").Inc()
	}
	return err
}

// stored is the outcome of a conversation that is there now, new or not.
const stored = "stored"
