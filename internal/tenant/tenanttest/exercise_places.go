package tenanttest

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func (f *fixture) place(t *testing.T) tenant.Placement {
	t.Helper()
	p, err := f.Store.Place(t.Context(), f.got.ID)
	if err != nil {
		t.Fatalf("Place: %v", err)
	}
	return p
}

func (f *fixture) move(t *testing.T) tenant.Places {
	t.Helper()
	places, err := f.Store.Move(t.Context(), f.got.ID)
	if err != nil {
		t.Fatalf("Move: %v", err)
	}
	return places
}

func (f *fixture) refill(t *testing.T, p tenant.Placement, made int64) {
	t.Helper()
	if err := f.Store.Refill(t.Context(), f.got.ID, p, made); err != nil {
		t.Fatalf("Refill: %v", err)
	}
}

// wantPlaces checks what Apply says of where the tenant is.
func (f *fixture) wantPlaces(t *testing.T, want tenant.Places) {
	t.Helper()
	f.apply(t)
	if diff := cmp.Diff(want, f.got.Places); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
}

func placements(c check) {
	t, b := c.t, c.Backend
	f, other := applied(t, b), applied(t, b)
	first := f.place(t)
	if first.Collection == "" || first.Partition == "" || first.Shared {
		t.Fatalf("Place = %+v, want a collection and a partition", first)
	}
	if second := f.place(t); second != first {
		t.Errorf("the second Place = %+v, want %+v again", second, first)
	}
	f.wantPlaces(t, tenant.Places{Current: tenant.Place{Placement: first}})
	if theirs := other.place(t); theirs == first {
		t.Errorf("Place of another tenant = %+v, want another one", theirs)
	}
	if got := f.move(t); got != f.got.Places {
		t.Errorf("Move = %+v without a reason, want %+v", got, f.got.Places)
	}
}

func refills(c check) {
	t, b := c.t, c.Backend
	f := applied(t, b)
	place := tenant.Place{Placement: f.place(t), Made: 41}
	f.refill(t, place.Placement, place.Made)
	f.wantPlaces(t, tenant.Places{Current: place})
	version := f.Version(t, f.got.ID)
	f.refill(t, place.Placement, place.Made)
	f.refill(t, tenant.Placement{Collection: "c", Partition: "another's"}, 42)
	if now := f.Version(t, f.got.ID); now != version {
		t.Errorf("Refill of what is known wrote: version %s became %s", version, now)
	}
	place.Made = 43
	f.refill(t, place.Placement, place.Made)
	b.Work(t)
	f.wantPlaces(t, tenant.Places{Current: place})
}

func loses(c check) {
	t, b := c.t, c.Backend
	spec := NewSpec()
	spec.Isolation = tenant.Shared
	one, other := &fixture{Backend: b, spec: spec}, &fixture{Backend: b, spec: NewSpec()}
	other.spec.Isolation = tenant.Shared
	own := applied(t, b)
	made := rand.Int64N(1<<40) + 1
	var places []tenant.Place
	for _, f := range []*fixture{one, other, own} {
		f.apply(t)
		places = append(places, tenant.Place{Placement: f.place(t), Made: made})
		f.refill(t, places[len(places)-1].Placement, made)
	}
	for range 2 {
		if err := b.Store.Lose(t.Context(), places[0]); err != nil {
			t.Fatalf("Lose: %v", err)
		}
	}
	places[0].Made, places[1].Made = 0, 0
	one.wantPlaces(t, tenant.Places{Current: places[0]})
	other.wantPlaces(t, tenant.Places{Current: places[1]})
	own.wantPlaces(t, tenant.Places{Current: places[2]})
	places[1].Made = made + 1
	other.refill(t, places[1].Placement, places[1].Made)
	b.Work(t)
	other.wantPlaces(t, tenant.Places{Current: places[1]})
	if err := b.Store.Lose(t.Context(), places[2]); err != nil {
		t.Fatalf("Lose: %v", err)
	}
	places[2].Made = 0
	own.wantPlaces(t, tenant.Places{Current: places[2]})
	other.wantPlaces(t, tenant.Places{Current: places[1]})
}

// lostForSome is of a shared collection that was lost, and is asked for by one
// who was told of it, or knows no number yet, before the others were told.
func lostForSome(c check) {
	t, b := c.t, c.Backend
	partitions, other, moving := NewFake(), applied(t, b), applied(t, b)
	f, late := applied(t, b), &fixture{Backend: b, spec: NewSpec()}
	ensure := func(f *fixture, p tenant.Placement) tenant.Place {
		made, err := tenant.EnsurePlace(t.Context(), b.Store, partitions, tenant.Place{Placement: p})
		if err != nil {
			t.Fatalf("EnsurePlace: %v", err)
		}
		f.refill(t, p, made)
		b.Work(t)
		return tenant.Place{Placement: p, Made: made}
	}
	for _, f := range []*fixture{f, other, late} {
		f.spec.Isolation = tenant.Shared
	}
	f.apply(t)
	other.apply(t)
	ensure(moving, moving.place(t))
	for who, ask := range map[string]func(lost tenant.Placement) tenant.Place{
		"one who was told": func(lost tenant.Placement) tenant.Place { f.refill(t, lost, 0); return ensure(f, lost) },
		"one who is new":   func(tenant.Placement) tenant.Place { late.apply(t); return ensure(late, late.place(t)) },
		"one who moves there": func(tenant.Placement) tenant.Place {
			moving.spec.Isolation = tenant.Shared
			moving.apply(t)
			return ensure(moving, moving.move(t).Next.Placement)
		},
	} {
		was, theirs := ensure(f, f.place(t)), ensure(other, other.place(t))
		if was.Made != theirs.Made {
			t.Fatalf("two are at %+v and %+v, want the same collection", was, theirs)
		}
		partitions.TakeAway(was.Placement)
		if now := ask(was.Placement); now.Collection != was.Collection || now.Made == was.Made || now.Made == 0 {
			t.Errorf("%s is at %+v, want the collection of %+v made again", who, now, was)
		}
		other.wantPlaces(t, tenant.Places{Current: tenant.Place{Placement: theirs.Placement}})
	}
}

func moves(c check) {
	t, b := c.t, c.Backend
	f, other := applied(t, b), applied(t, b)
	first := tenant.Place{Placement: f.place(t), Made: 41}
	f.refill(t, first.Placement, first.Made)
	theirs := tenant.Places{Current: tenant.Place{Placement: other.place(t)}}

	f.spec.Isolation = tenant.Shared
	f.wantPlaces(t, tenant.Places{Current: first}) // until Move is called
	next := f.move(t).Next
	if !next.Shared || next.Partition == first.Partition || next.Collection == first.Collection || next.Made != 0 {
		t.Fatalf("Move gives %+v as the next place, want a shared one", next)
	}
	if again := f.move(t).Next; again != next {
		t.Errorf("the second Move gives %+v, want %+v again", again, next)
	}
	b.Work(t)
	f.wantPlaces(t, tenant.Places{Current: first, Next: next}) // nothing is there yet
	next.Made = 7
	f.refill(t, next.Placement, next.Made)
	f.wantPlaces(t, tenant.Places{Current: first, Next: next})
	b.Work(t)
	f.wantPlaces(t, tenant.Places{Current: next})
	if got := f.place(t); got != next.Placement {
		t.Errorf("Place = %+v after the move, want %+v", got, next.Placement)
	}

	f.spec.Isolation = tenant.Partition
	f.apply(t)
	back := f.move(t).Next
	if back.Shared || back.Placement == first.Placement {
		t.Errorf("Move back gives %+v, want a partition that was never given out before", back)
	}
	f.refill(t, back.Placement, 8)
	f.spec.Isolation = tenant.Shared // a change of mind before it is filled
	f.apply(t)
	if got := f.move(t); got != (tenant.Places{Current: next}) {
		t.Errorf("Move = %+v after a change of mind, want %+v only", got, next)
	}
	b.Work(t)
	f.wantPlaces(t, tenant.Places{Current: next})
	other.wantPlaces(t, theirs)
}

// placedShared is of a tenant that asks for it from the start.
func placedShared(c check) {
	t, b := c.t, c.Backend
	f, other := applied(t, b), applied(t, b)
	for _, f := range []*fixture{f, other} {
		f.spec.Isolation = tenant.Shared
		f.apply(t)
	}
	ours, theirs := f.place(t), other.place(t)
	if !ours.Shared || ours.Collection != theirs.Collection || ours.Partition == theirs.Partition {
		t.Errorf("two shared tenants are at %+v and %+v, want one collection and a key each", ours, theirs)
	}
}
