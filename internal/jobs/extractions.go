package jobs

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"github.com/mnemo-dev/mnemo/internal/extract"
	"github.com/mnemo-dev/mnemo/internal/queue"
)

// extractionTimeout bounds one attempt, in which the chat model is asked up to three times.
const extractionTimeout = 10 * time.Minute

// ExtractFacts adds the jobs that extract facts from messages.
func ExtractFacts(c *river.Config, r *extract.Runner, log *slog.Logger) error {
	if err := add(c.Workers, log, extractionTimeout, r.Run); err != nil {
		return fmt.Errorf("register worker: %w", err)
	}
	c.Queues[queue.Extractions] = river.QueueConfig{MaxWorkers: extractionWorkers}
	return nil
}
