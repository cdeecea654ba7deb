package jobs

import (
	"fmt"
	"log/slog"

	"github.com/riverqueue/river"

	"github.com/mnemo-dev/mnemo/internal/queue"
	"github.com/mnemo-dev/mnemo/internal/webhook"
)

// DeliverWebhooks adds the jobs that deliver events to webhooks.
func DeliverWebhooks(c *river.Config, w *webhook.Deliverer, log *slog.Logger) error {
	if err := add(c.Workers, log, jobTimeout, w.Deliver); err != nil {
		return fmt.Errorf("register worker: %w", err)
	}
	c.Queues[queue.Webhooks] = river.QueueConfig{MaxWorkers: webhookWorkers}
	return nil
}
