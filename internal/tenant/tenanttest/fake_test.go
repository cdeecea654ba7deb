package tenanttest_test

import (
	"testing"

	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
)

func TestFake(t *testing.T) {
	t.Parallel()
	tenanttest.Exercise(t, func(*testing.T) tenanttest.Backend { return tenanttest.NewFake().Backend() })
}
