package tenanttest

import (
	"context"
	"fmt"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Place implements tenant.Placer.
func (f *Fake) Place(_ context.Context, id tenant.ID) (got tenant.Placement, err error) {
	defer f.begin("Place", &err)()
	if err != nil {
		return tenant.Placement{}, err
	}
	r, err := f.row(id)
	if err != nil {
		return tenant.Placement{}, err
	}
	if r.places.Current == (tenant.Place{}) {
		r.places.Current.Placement = f.place(r)
		r.version++
	}
	return r.places.Current.Placement, nil
}

// place gives out a placement of the kind the row asks for.
func (f *Fake) place(r *row) tenant.Placement {
	f.places++
	p := tenant.Placement{Collection: "units_1", Partition: fmt.Sprintf("t%d", f.places)}
	if r.spec.Isolation == tenant.Shared {
		p.Collection, p.Shared = "units_shared_1", true
	}
	return p
}

// Move implements tenant.Placer.
func (f *Fake) Move(_ context.Context, id tenant.ID) (got tenant.Places, err error) {
	defer f.begin("Move", &err)()
	if err != nil {
		return tenant.Places{}, err
	}
	r, err := f.row(id)
	if err != nil {
		return tenant.Places{}, err
	}
	shared, moving := r.spec.Isolation == tenant.Shared, r.places.Next != tenant.Place{}
	switch {
	case r.places.Current == (tenant.Place{}), r.places.Rebuilding:
	case moving && r.places.Current.Shared == shared:
		f.drop(r.places.Next.Placement)
		r.places.Next = tenant.Place{}
		r.version++
	case !moving && r.places.Current.Shared != shared:
		r.places.Next.Placement = f.place(r)
		r.version++
	}
	return r.places, nil
}

// Refill implements tenant.Placer.
func (f *Fake) Refill(_ context.Context, id tenant.ID, p tenant.Placement, made int64) (err error) {
	defer f.begin("Refill", &err)()
	if err != nil {
		return err
	}
	r, err := f.row(id)
	if err != nil {
		return err
	}
	place := &r.places.Current
	if r.places.Next.Placement == p {
		place = &r.places.Next
	}
	if place.Placement != p || place.Made == made {
		return nil
	}
	if holds := r.holds(); holds || place.Made != 0 || r.lost {
		f.reindexed[id]++
		r.places.Rebuilding = place == &r.places.Current && holds
	}
	if place == &r.places.Current {
		r.places.Next = tenant.Place{}
	}
	place.Made, r.lost = made, false
	r.version++
	return nil
}

func (r *row) holds() bool { return r.usage.Memories+r.usage.Conversations > 0 }

// Lose implements tenant.Placer.
func (f *Fake) Lose(_ context.Context, p tenant.Place) (err error) {
	defer f.begin("Lose", &err)()
	if err != nil {
		return err
	}
	for _, r := range f.rows {
		for _, place := range []*tenant.Place{&r.places.Current, &r.places.Next} {
			there := place.Placement == p.Placement || p.Shared && place.Shared && place.Collection == p.Collection
			if !there || place.Made != p.Made {
				continue
			}
			place.Made, r.lost = 0, true
			r.places.Rebuilding = place == &r.places.Current && r.holds()
			r.version++
		}
	}
	return nil
}

// Known implements tenant.Placer.
func (f *Fake) Known(_ context.Context, p tenant.Placement) (made int64, err error) {
	defer f.begin("Known", &err)()
	if err != nil {
		return 0, err
	}
	for _, r := range f.rows {
		for _, place := range []tenant.Place{r.places.Current, r.places.Next} {
			if !r.retired && place.Shared && place.Collection == p.Collection {
				made = max(made, place.Made)
			}
		}
	}
	return made, nil
}

// Ensure implements tenant.Partitions.
func (f *Fake) Ensure(_ context.Context, p tenant.Place) (made int64, err error) {
	defer f.begin("Ensure", &err)()
	if err != nil {
		return 0, err
	}
	if f.numbers[number(p.Placement)] == 0 && p.Made == 0 {
		f.made++
		f.numbers[number(p.Placement)] = f.made
	}
	made = f.numbers[number(p.Placement)]
	f.partitions[p.Placement] = made != 0
	return made, nil
}

// number is what has one: a partition, or all of a shared collection.
func number(p tenant.Placement) tenant.Placement {
	if p.Shared {
		p.Partition = ""
	}
	return p
}

// Drop implements tenant.Partitions.
func (f *Fake) Drop(_ context.Context, p tenant.Placement) (err error) {
	defer f.begin("Drop", &err)()
	if err != nil {
		return err
	}
	f.drop(p)
	return nil
}

func (f *Fake) drop(p tenant.Placement) {
	delete(f.partitions, p)
	if !p.Shared {
		delete(f.numbers, p)
	}
}

// settle ends the filling of places that were made, as the job would.
func (f *Fake) settle(r *row) {
	r.places.Rebuilding = r.places.Rebuilding && r.places.Current.Made == 0
	if r.places.Next.Made != 0 {
		f.drop(r.places.Current.Placement)
		r.places.Current, r.places.Next = r.places.Next, tenant.Place{}
		r.version++
	}
}
