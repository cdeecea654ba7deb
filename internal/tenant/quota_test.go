package tenant_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func TestQuotaExceededIsForbidden(t *testing.T) {
	t.Parallel()
	want := tenant.QuotaExceeded{Resource: tenant.ResourceMemories, Limit: 10, Used: 10}
	err := fmt.Errorf("create memory: %w", want)
	if !fault.Is(err, fault.Forbidden) {
		t.Errorf("kind is %s, want %s", fault.KindOf(err), fault.Forbidden)
	}
	if got, ok := errors.AsType[tenant.QuotaExceeded](err); !ok || got != want {
		t.Errorf("AsType = %+v, %t, want %+v", got, ok, want)
	}
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Message != want.Error() {
		t.Errorf("the message for the caller is %v, want %q", f, want.Error())
	}
}

func TestQuotaExceededMessages(t *testing.T) {
	t.Parallel()
	for resource, want := range map[string]string{
		tenant.ResourceMemories:     "memory quota exceeded (limit 10); delete some data or ask your administrator for a higher quota",
		tenant.ResourceUserMemories: "per-user memory quota exceeded (limit 10); delete some data or ask your administrator for a higher quota",
		tenant.ResourceStorage:      "storage quota exceeded (limit 10 bytes, used 9); delete some data or ask your administrator for a higher quota",
		tenant.ResourceUsers:        "user quota exceeded (limit 10); contact your administrator",
	} {
		if got := (tenant.QuotaExceeded{Resource: resource, Limit: 10, Used: 9}).Error(); got != want {
			t.Errorf("message is %q, want %q", got, want)
		}
	}
}
