package importer_test

import (
	"testing"

	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// An import that runs while its user is erased stores nothing more.
func TestImportsOfErasedUsers(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.importFile(t, b.bob, export(t, conversations(3)))
	for name, tc := range map[string]struct {
		file   []byte
		runner *importer.Runner
		user   tenant.Scope
	}{
		"conversations": {export(t, conversations(3)), b.runner(), b.alice},
		"archive":       {b.exported(t, b.bob), b.restoring(), b.carol},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := b.upload(t, tc.user, tc.file, "")
			if _, err := b.owner.Exec(t.Context(), "update users set purging = true where id = $1", int64(tc.user.User)); err != nil {
				t.Fatal(err)
			}
			if again, err := tc.runner.Run(t.Context(), args(tc.user, id)); err != nil || again == 0 {
				t.Errorf("Run = %s, %v; want that the lease is lost", again, err)
			}
			if n := b.count(t, "conversations where user_id = $1", int64(tc.user.User)); n != 0 {
				t.Errorf("%d conversations are stored, want none", n)
			}
		})
	}
}
