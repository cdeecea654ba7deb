package milvus_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/milvus"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func TestEnsureAgainChangesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.upsert(t, b.place, entry(1, b.alice.User, 1))
	created, err := b.Ensure(t.Context(), b.place)
	if err != nil || created {
		t.Fatalf("Ensure = %t, %v, want false", created, err)
	}
	if d := cmp.Diff([]retrieve.UnitID{1}, b.list(t, b.place)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestEnsureByManyAtOnce(t *testing.T) {
	t.Parallel()
	b := prepare(t)
	var wait sync.WaitGroup
	for i := range 6 {
		x := open(t, config(t, b.prefix)) // a connection each, as processes have
		p := b.place
		p.Partition = []string{"p_a", "p_b"}[i%2]
		wait.Go(func() {
			if _, err := x.Ensure(t.Context(), p); err != nil {
				t.Errorf("Ensure: %v", err)
			}
		})
	}
	wait.Wait()
	p := tenant.Placement{Collection: b.place.Collection, Partition: "p_b"}
	b.upsert(t, p, entry(1, b.alice.User, 1))
	if d := cmp.Diff([]retrieve.UnitID{1}, b.search(t, b.alice, p, retrieve.Query{})); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestDropAndEnsureAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := tenant.Placement{Collection: b.place.Collection, Partition: "p_two"}
	if _, err := b.Ensure(t.Context(), other); err != nil {
		t.Fatalf("Ensure: %v", err)
	}
	b.upsert(t, b.place, entry(1, b.alice.User, 1))
	b.upsert(t, other, entry(2, b.alice.User, 1))
	for range 2 { // the second finds nothing to do
		if err := b.Drop(t.Context(), b.place); err != nil {
			t.Fatalf("Drop: %v", err)
		}
	}

	_, err := b.Search(t.Context(), b.alice, b.place, retrieve.Query{Kind: retrieve.Memory, Limit: 1}, axis(1))
	if !errors.Is(err, milvus.ErrNoPartition) || !fault.Is(err, fault.Unavailable) {
		t.Errorf("Search = %v, want ErrNoPartition of kind Unavailable", err)
	}
	err = b.Upsert(t.Context(), b.tenant, b.place, []retrieve.Entry{entry(1, b.alice.User, 1)})
	if !errors.Is(err, milvus.ErrNoPartition) {
		t.Errorf("Upsert = %v, want ErrNoPartition", err)
	}
	if _, err := b.List(t.Context(), b.tenant, b.place, 0, 10); !errors.Is(err, milvus.ErrNoPartition) {
		t.Errorf("List = %v, want ErrNoPartition", err)
	}
	if d := cmp.Diff([]retrieve.UnitID{2}, b.search(t, b.alice, other, retrieve.Query{})); d != "" {
		t.Errorf("the other tenant's entries, -want +got\n%s", d)
	}

	created, err := b.Ensure(t.Context(), b.place)
	if err != nil || !created {
		t.Fatalf("Ensure = %t, %v, want true", created, err)
	}
	if got := b.list(t, b.place); got != nil {
		t.Errorf("a partition made again holds %v", got)
	}
	b.upsert(t, b.place, entry(3, b.alice.User, 1))
	if d := cmp.Diff([]retrieve.UnitID{3}, b.search(t, b.alice, b.place, retrieve.Query{})); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestDropWhereNothingIs(t *testing.T) {
	t.Parallel()
	b := prepare(t)
	if err := b.Drop(t.Context(), b.place); err != nil {
		t.Errorf("Drop = %v, want nil", err)
	}
}

func TestEnsureFinishesWhatACrashLeft(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.upsert(t, b.place, entry(1, b.alice.User, 1))
	c, err := sdk(t.Context(), t)
	if err != nil {
		t.Fatalf("connect to Milvus: %v", err)
	}
	defer func() { _ = c.Close() }()
	name := b.prefix + b.place.Collection

	if err := c.ReleasePartitions(t.Context(), name, []string{b.place.Partition}); err != nil {
		t.Fatalf("release partition: %v", err)
	}
	b.ensure(t, b.place)
	if d := cmp.Diff([]retrieve.UnitID{1}, b.search(t, b.alice, b.place, retrieve.Query{})); d != "" {
		t.Errorf("after a Drop that stopped half-way, -want +got\n%s", d)
	}

	if err := c.ReleaseCollection(t.Context(), name); err != nil {
		t.Fatalf("release collection: %v", err)
	}
	if err := c.DropIndex(t.Context(), name, "embedding"); err != nil {
		t.Fatalf("drop index: %v", err)
	}
	_, err = b.Search(t.Context(), b.alice, b.place, retrieve.Query{Kind: retrieve.Memory, Limit: 1}, axis(1))
	if !fault.Is(err, fault.Unavailable) {
		t.Errorf("Search of what is not loaded = %v, want Unavailable", err)
	}
	b.ensure(t, b.place)
	if d := cmp.Diff([]retrieve.UnitID{1}, b.search(t, b.alice, b.place, retrieve.Query{})); d != "" {
		t.Errorf("after an Ensure that stopped half-way, -want +got\n%s", d)
	}
}

func (b bundle) ensure(t *testing.T, p tenant.Placement) {
	t.Helper()
	created, err := b.Ensure(t.Context(), p)
	if err != nil || created {
		t.Fatalf("Ensure = %t, %v, want false", created, err)
	}
}

func TestEnsureRefusesAnotherModel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := config(t, b.prefix)
	c.Dimensions = 1536
	_, err := open(t, c).Ensure(t.Context(), b.place)
	if !fault.Is(err, fault.Invalid) {
		t.Fatalf("Ensure = %v, want Invalid", err)
	}
	for _, want := range []string{"16 dimensions", "1536", "reindex"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not say %q", err, want)
		}
	}
}
