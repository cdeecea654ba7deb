package tenanttest

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Records implements tenant.RecordStore.
func (f *Fake) Records(_ context.Context, of tenant.RecordsOf) (out []tenant.Record, err error) {
	defer f.begin("Records", &err)()
	if err != nil {
		return nil, err
	}
	for id, r := range f.rows {
		if matches(of.Cluster, r.spec.Cluster) && matches(of.Namespace, r.spec.Namespace) && matches(of.Name, r.spec.Name) {
			out = append(out, r.record(id))
		}
	}
	slices.SortFunc(out, func(a, b tenant.Record) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

func matches(filter, value string) bool { return filter == "" || filter == value }

func (r *row) record(id tenant.ID) tenant.Record {
	out := tenant.Record{
		ID: id, Resource: r.uid, Cluster: r.spec.Cluster, Namespace: r.spec.Namespace, NamespaceUID: r.spec.NamespaceUID, Name: r.spec.Name,
		State: tenant.Active, Policy: r.spec.DeletionPolicy, RetiredAt: r.retiredAt, Usage: r.usage, Placement: r.placement.Current.Location,
		Target: r.placement.Migration.Target.Location,
	}
	switch {
	case r.purging:
		out.State = tenant.Purging
	case r.retired:
		out.State = tenant.Retained
	}
	return out
}

// MarkOrphaned implements tenant.RecordStore.
func (f *Fake) MarkOrphaned(_ context.Context, id tenant.ID) (err error) {
	defer f.begin("MarkOrphaned", &err)()
	if err != nil {
		return err
	}
	if r := f.rows[id]; r != nil && !r.retired {
		r.retired, r.retiredAt = true, time.Now()
		r.revokeAll()
		r.endDeclaredWebhooks()
	}
	return nil
}

// Reassign implements tenant.RecordStore.
func (f *Fake) Reassign(_ context.Context, id tenant.ID, to tenant.Owner) (err error) {
	defer f.begin("Reassign", &err)()
	if err != nil {
		return err
	}
	r := f.rows[id]
	if r == nil || !r.retired || r.purging {
		return fault.New(fault.Conflict, "tenant %s is not retained", id)
	}
	r.spec.NamespaceUID, r.spec.Cluster = to.NamespaceUID, cmp.Or(to.Cluster, r.spec.Cluster)
	return nil
}

// Revoke implements tenant.RecordStore.
func (f *Fake) Revoke(_ context.Context, id tenant.ID) (n int64, err error) {
	defer f.begin("Revoke", &err)()
	if err != nil {
		return 0, err
	}
	if r := f.rows[id]; r != nil {
		n = r.revokeAll()
	}
	return n, nil
}

// PurgeRows implements tenant.PurgeStore.
func (f *Fake) PurgeRows(_ context.Context, id tenant.ID) (locations []placement.Location, err error) {
	defer f.begin("PurgeRows", &err)()
	if err != nil {
		return nil, err
	}
	if r := f.rows[id]; r != nil && r.purging {
		r.usage, r.users, locations = tenant.Usage{}, map[string]*user{}, r.locations()
	}
	return locations, nil
}

// DeletePurged implements tenant.PurgeStore.
func (f *Fake) DeletePurged(_ context.Context, id tenant.ID) (err error) {
	defer f.begin("DeletePurged", &err)()
	if err != nil {
		return err
	}
	if r := f.rows[id]; r != nil && r.purging {
		delete(f.rows, id)
	}
	return nil
}

// locations returns the current location and the target of a migration.
func (r *row) locations() (locations []placement.Location) {
	for _, at := range []placement.Location{r.placement.Current.Location, r.placement.Migration.Target.Location} {
		if at.Indexed() {
			locations = append(locations, at)
		}
	}
	return locations
}

// revokeAll revokes every token and returns the number of valid ones.
func (r *row) revokeAll() (n int64) {
	for _, u := range r.users {
		for _, t := range u.tokens {
			if t.valid() {
				n++
			}
		}
		u.revoke(u.newest + 1)
	}
	return n
}

// Age moves the time of retirement into the past.
func (f *Fake) Age(id tenant.ID, by time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rows[id].retiredAt = f.rows[id].retiredAt.Add(-by)
}
