package jobs

import (
	"context"

	"github.com/riverqueue/river"

	"github.com/mnemo-dev/mnemo/internal/importer"
)

// importFile continues an import. If another worker is running it, the job is snoozed
// until that worker's lease may have expired.
func importFile(ctx context.Context, imports *importer.Runner, a importer.Args) error {
	again, err := imports.Run(ctx, a)
	if err != nil || again == 0 {
		return err
	}
	return river.JobSnooze(again)
}
