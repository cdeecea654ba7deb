package apiserver

import (
	"context"
	"iter"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// fakeAudit has no records.
type fakeAudit struct{ *fakeStores }

var _ audit.Store = fakeAudit{}

func (f fakeAudit) PendingTenants(context.Context) ([]tenant.ID, error) { return nil, nil }

func (f fakeAudit) SealRecords(context.Context, tenant.ID, bool) error { return nil }

func (f fakeAudit) UserRecords(_ context.Context, scope tenant.Scope, _ int64, _ int) ([]audit.Record, error) {
	_, end, err := f.begin(scope)
	defer end()
	return nil, err
}

func (f fakeAudit) RecentRecords(ctx context.Context, scope tenant.Scope, _ int64, limit int) ([]audit.Record, error) {
	return f.UserRecords(ctx, scope, 0, limit)
}

func (f fakeAudit) TenantRecords(context.Context, tenant.ID, func(audit.Head, iter.Seq2[audit.Record, error]) error) error {
	return nil
}
