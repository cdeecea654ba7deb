package jobs

import (
	"context"

	"github.com/riverqueue/river"

	"github.com/mnemo-dev/mnemo/internal/importer"
)

// importFile goes on with an import. One that is in another worker's hands is
// looked at again when that one may have died.
func importFile(ctx context.Context, imports Imports, a importer.Args) error {
	again, err := imports.Run(ctx, a)
	if err != nil || again == 0 {
		return err
	}
	return river.JobSnooze(again)
}
