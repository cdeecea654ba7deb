package milvus

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// conjunction is every expression that may be sent: an optional key of the shared
// collection, and numbers.
var conjunction = regexp.MustCompile(`^(?:placement == ("(?:[^"\\\n]|\\.)*") && )?user_id == (-?\d+) && kind == (-?\d+)(?: && group_id == (-?\d+))?$`)

// FuzzFilter: whatever the scope, the group and the placement are, the filter is one
// conjunction that names exactly them.
func FuzzFilter(f *testing.F) {
	for _, key := range []string{"", "p_1", `" || user != "`, `\`, "\x00\n", "ü", "\xff"} {
		f.Add(key, int64(7), int64(3), key != "")
		f.Add(key, int64(-1), int64(0), false)
	}
	f.Fuzz(func(t *testing.T, key string, user, group int64, shared bool) {
		scope := tenant.Scope{Tenant: tenant.ID(key), User: tenant.UserID(user)}
		expr := within(placement.Location{Partition: key, Shared: shared}, filter(scope, retrieve.Request{Kind: retrieve.Memory, Group: group, Text: key}))
		m := conjunction.FindStringSubmatch(expr)
		if m == nil {
			t.Fatalf("expression %q", expr)
		}
		if shared {
			if got, err := strconv.Unquote(m[1]); err != nil || got != key {
				t.Fatalf("expression %q names the key %q, not %q: %v", expr, got, key, err)
			}
		}
		if m[2] != strconv.FormatInt(user, 10) || m[3] != strconv.Itoa(int(retrieve.Memory)) || group != 0 && m[4] != strconv.FormatInt(group, 10) {
			t.Fatalf("expression %q of user %d and group %d", expr, user, group)
		}
	})
}
