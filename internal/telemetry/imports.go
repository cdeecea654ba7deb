package telemetry

import (
	"context"
	"errors"

	"github.com/mnemo-dev/mnemo/internal/chat"
)

// Imports returns an import store that counts the results of imports.
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
		i.metrics.importedConversations.WithLabelValues(entryOutcome(e.Outcome)).Inc()
	}
	return nil
}

// Finish implements chat.ImportFiles.
func (i *imports) Finish(ctx context.Context, run chat.ImportRun, failure string, warnings []string) error {
	err := i.ImportFiles.Finish(ctx, run, failure, warnings)
	switch {
	case errors.Is(err, chat.ErrLost): // the worker that took over the lease counts the import
	case err != nil: // the import will be retried
	case failure != "":
		i.metrics.imports.WithLabelValues(outcomeError).Inc()
	default:
		i.metrics.imports.WithLabelValues(outcomeSuccess).Inc()
	}
	return err
}

// entryOutcome returns the outcome label of a conversation.
func entryOutcome(o chat.EntryOutcome) string {
	switch o {
	case chat.EntrySkipped:
		return outcomeSkipped
	case chat.EntryFailed:
		return outcomeError
	default:
		return outcomeSuccess
	}
}
