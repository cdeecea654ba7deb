package tenanttest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Fail makes every call of the methods return err without effect, until Heal.
func (f *Fake) Fail(err error, methods ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Before = failing(err, methods)
}

// FailAfter makes every call of the methods return err after it took effect, until
// Heal.
func (f *Fake) FailAfter(err error, methods ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.After = failing(err, methods)
}

func failing(err error, methods []string) func(string) error {
	return func(method string) error {
		if slices.Contains(methods, method) {
			return err
		}
		return nil
	}
}

// Heal removes Before and After.
func (f *Fake) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Before, f.After = nil, nil
}

// Calls returns the number of calls of each method.
func (f *Fake) Calls() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.calls)
}

// Installed returns the number of tokens ever installed. Before may call it.
func (f *Fake) Installed() int { return len(f.hashes) }

// Scope returns the scope of a user; its User is 0 if there is no such user.
func (f *Fake) Scope(id tenant.ID, name string) tenant.Scope {
	f.mu.Lock()
	defer f.mu.Unlock()
	scope := tenant.Scope{Tenant: id}
	if r := f.rows[id]; r != nil && r.users[name] != nil {
		scope.User = r.users[name].id
	}
	return scope
}

// HasPartition reports whether the partition exists.
func (f *Fake) HasPartition(p placement.Location) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.partitions[p]
}

// Reindexed returns how often the tenant's units were copied into a partition that
// was lost or newly created.
func (f *Fake) Reindexed(id tenant.ID) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reindexed[id]
}

// Spec returns the last applied spec without its users, and false if the tenant is
// missing or retired.
func (f *Fake) Spec(id tenant.ID) (tenant.Spec, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.row(id)
	if err != nil {
		return tenant.Spec{}, false
	}
	return r.spec, true
}

// Fill adds memories and conversations to the tenant.
func (f *Fake) Fill(id tenant.ID, memories, conversations int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	u := &f.rows[id].usage
	u.Memories += int64(memories)
	u.Conversations += int64(conversations)
	u.Storage += int64(100 * (memories + conversations))
}

// Work runs the jobs that complete migrations and purges. A purge that fails is
// retried by the next call.
func (f *Fake) Work() {
	f.mu.Lock()
	var purging []tenant.ID
	for id, r := range f.rows {
		f.completeMigration(r)
		if r.purging {
			purging = append(purging, id)
		}
	}
	f.mu.Unlock()
	for _, id := range purging {
		_ = tenant.Purge(context.Background(), f, f, id)
	}
}

// SetUnindexed sets whether tenants are placed in no index.
func (f *Fake) SetUnindexed(unindexed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unindexed = unindexed
}

// SetOutgrown sets whether the tenant has outgrown exact scoring.
func (f *Fake) SetOutgrown(id tenant.ID, outgrown bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.rows[id]
	r.outgrown = outgrown
	r.placement.Outgrown = outgrown && r.placement.Assigned()
	r.version++
}

// Backend returns the fake as the backend of Exercise.
func (f *Fake) Backend() Backend {
	return Backend{
		Store: f, Unindexed: unindexedFake{f}, Tokens: f, Access: f, Cells: f, Records: f, Sessions: f, Webhooks: f,
		Fill: func(_ *testing.T, s tenant.Scope, memories, conversations int) {
			f.Fill(s.Tenant, memories, conversations)
		},
		SetOutgrown: func(_ *testing.T, id tenant.ID, outgrown bool) { f.SetOutgrown(id, outgrown) },
		Work:        func(*testing.T) { f.Work() },
		Version: func(_ *testing.T, id tenant.ID) string {
			f.mu.Lock()
			defer f.mu.Unlock()
			return fmt.Sprint(f.rows[id].version)
		},
	}
}

// Valid returns the hashes of the user's tokens that Identify accepts, oldest first.
func (f *Fake) Valid(id tenant.ID, name string) []tenant.Hash {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.rows[id]
	if r == nil || r.users[name] == nil {
		return nil
	}
	var valid []tenant.Hash
	for _, t := range r.users[name].tokens {
		if t.valid() {
			valid = append(valid, t.TokenHash)
		}
	}
	return valid
}

// SetNext sets the tenant's placement in the next generation; zero for none.
func (f *Fake) SetNext(id tenant.ID, next placement.Next) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rows[id].placement.Next = next
}

// LosePartition removes the partition, or the whole shared collection, like an index
// that lost its data.
func (f *Fake) LosePartition(p placement.Location) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.partitionIDs, idKey(p))
	maps.DeleteFunc(f.partitions, func(other placement.Location, _ bool) bool { return idKey(other) == idKey(p) })
}

// unindexedFake places tenants in no index.
type unindexedFake struct{ *Fake }

// EnsurePlacement implements tenant.PlacementStore.
func (f unindexedFake) EnsurePlacement(ctx context.Context, id tenant.ID) (placement.Location, error) {
	f.SetUnindexed(true)
	defer f.SetUnindexed(false)
	return f.Fake.EnsurePlacement(ctx, id)
}

// ReconcilePlacement implements tenant.PlacementStore.
func (f unindexedFake) ReconcilePlacement(ctx context.Context, id tenant.ID) (placement.State, error) {
	f.SetUnindexed(true)
	defer f.SetUnindexed(false)
	return f.Fake.ReconcilePlacement(ctx, id)
}
