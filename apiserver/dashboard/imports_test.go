package dashboard

import (
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/importer"
)

func TestEstimate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		view importView
		want string
	}{
		"running":    {importView{importer.Import{Status: importer.Running, Total: 300, Imported: 90, Failed: 10}, time.Minute}, "about 2 minutes left"},
		"indexing":   {importView{importer.Import{Status: importer.Done, Total: 300, Blocked: 100, Indexed: 200}, time.Minute}, "about 1 minute left"},
		"too early":  {importView{importer.Import{Status: importer.Running, Total: 300, Imported: 1}, time.Second}, ""},
		"no total":   {importView{importer.Import{Status: importer.Running, Imported: 9}, time.Minute}, ""},
		"queued":     {importView{importer.Import{Status: importer.Queued, Total: 3, Imported: 1}, time.Minute}, ""},
		"failed":     {importView{importer.Import{Status: importer.Failed, Total: 3, Imported: 1}, time.Minute}, ""},
		"everything": {importView{importer.Import{Status: importer.Done, Total: 3, Indexed: 3}, time.Minute}, ""},
	} {
		if got := inEnglish.say(tt.view.Left()); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
