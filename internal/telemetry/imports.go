package telemetry

import (
	"context"
	"errors"

	"github.com/mnemo-dev/mnemo/internal/importer"
)

// Imports returns an import store that counts the results of imports.
func (m *Metrics) Imports(inner importer.Files) importer.Files { return &imports{inner, m} }

type imports struct {
	importer.Files
	metrics *Metrics
}

// StoreBatch implements importer.Files.
func (i *imports) StoreBatch(ctx context.Context, run importer.Run, b importer.Batch) (importer.Batch, error) {
	uncounted, err := i.Files.StoreBatch(ctx, run, b)
	if err != nil {
		return uncounted, err
	}
	left := make(map[int]bool, len(uncounted.Entries))
	for _, e := range uncounted.Entries {
		left[e.Ordinal] = true
	}
	for _, e := range b.Entries {
		if !left[e.Ordinal] {
			i.metrics.importedConversations.WithLabelValues(entryOutcome(e.Outcome)).Inc()
		}
	}
	return uncounted, nil
}

// Finish implements importer.Files.
func (i *imports) Finish(ctx context.Context, run importer.Run, failure string, warnings []string) error {
	err := i.Files.Finish(ctx, run, failure, warnings)
	switch {
	case errors.Is(err, importer.ErrLeaseLost): // the worker that took over the lease counts the import
	case err != nil: // the import will be retried
	case failure != "":
		i.metrics.imports.WithLabelValues(outcomeError).Inc()
	default:
		i.metrics.imports.WithLabelValues(outcomeSuccess).Inc()
	}
	return err
}

// entryOutcome returns the outcome label of a conversation.
func entryOutcome(o importer.EntryOutcome) string {
	switch o {
	case importer.EntrySkipped:
		return outcomeSkipped
	case importer.EntryFailed:
		return outcomeError
	default:
		return outcomeSuccess
	}
}
