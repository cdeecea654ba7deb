package postgres

import (
	"math"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// readIDs returns units with vectors of one dimension and texts, the id, and without words, as readAdded reads them.
func readIDs(ids ...retrieve.UnitID) *readUnits {
	r := &readUnits{same: true}
	for _, id := range ids {
		r.added.ids, r.added.content = append(r.added.ids, id), appendCode(r.added.content, encodeHalf([]float32{float32(id)}))
		r.added.words.lengths = append(r.added.words.lengths, 0)
		r.added.texts.add(uuid.UUID{}, 0, 0, strconv.AppendInt(nil, int64(id), 10))
		r.count, r.last, r.hash = r.count+1, id, r.hash^int64(id)
	}
	return r
}

// idsOf returns the ids of the units that are scored, in order.
func idsOf(v *storedUnits) (ids []retrieve.UnitID) {
	if v == nil {
		return nil
	}
	for _, h := range v.score([]float32{1}) {
		ids = append(ids, h.ID)
	}
	slices.Sort(ids)
	return ids
}

func userKey(user tenant.UserID) unitKey {
	return unitKey{Scope: tenant.JobScope("t", user), kind: retrieve.Memory, generation: 1}
}

func TestCachedUnitsExpire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newUnitCache()
		c.set(userKey(1), (&storedUnits{}).with(readIDs(1, 2)), time.Now())
		<-time.After(unitsExpire - 1)
		synctest.Wait()
		if v, _ := c.get(userKey(1)); !slices.Equal(idsOf(v), []retrieve.UnitID{1, 2}) {
			t.Errorf("before the expiry: %v, want two units", idsOf(v))
		}
		<-time.After(unitsExpire - 1) // the search extended it
		synctest.Wait()
		if v, _ := c.get(userKey(1)); len(idsOf(v)) != 2 {
			t.Errorf("after another search: %v, want two units", idsOf(v))
		}
		<-time.After(unitsExpire + 1)
		synctest.Wait()
		if v, _ := c.get(userKey(1)); v != nil || c.size != 0 {
			t.Errorf("after the expiry: %v in %d bytes, want nothing", idsOf(v), c.size)
		}
	})
}

func TestCachedUnitsAreSeparate(t *testing.T) {
	t.Parallel()
	c := newUnitCache()
	c.set(userKey(1), (&storedUnits{}).with(readIDs(1)), time.Now())
	for name, key := range map[string]unitKey{
		"user":       userKey(2),
		"tenant":     {Scope: tenant.JobScope("u", 1), kind: retrieve.Memory, generation: 1},
		"kind":       {Scope: tenant.JobScope("t", 1), kind: retrieve.Chat, generation: 1},
		"generation": {Scope: tenant.JobScope("t", 1), kind: retrieve.Memory, generation: 2},
	} {
		if v, _ := c.get(key); v != nil {
			t.Errorf("another %s has %v, want nothing", name, idsOf(v))
		}
	}
}

func TestUnitCacheIsBounded(t *testing.T) {
	t.Parallel()
	c := newUnitCache()
	half := unitPart{ids: []retrieve.UnitID{1}, content: make([]byte, maxCacheSize/2)}
	for user := range tenant.UserID(3) { // three searches began at once
		c.set(userKey(user), &storedUnits{parts: []unitPart{half}}, time.Now())
	}
	if c.size > maxCacheSize || len(c.users) != 1 {
		t.Errorf("%d bytes of %d users are kept, want one user", c.size, len(c.users))
	}
	c.set(userKey(0), &storedUnits{parts: []unitPart{half, half}}, time.Now()) // the user grew
	if c.size != 0 || len(c.users) != 0 {
		t.Errorf("%d bytes of %d users are kept, want none", c.size, len(c.users))
	}
	c.remove(userKey(0))
	if !c.fits(userKey(0), maxCacheSize) || c.fits(userKey(0), maxCacheSize+1) {
		t.Error("an empty cache has another size than the maximum")
	}
	c.set(userKey(0), &storedUnits{parts: []unitPart{half}}, time.Now())
	if !c.fits(userKey(0), maxCacheSize) || c.fits(userKey(1), maxCacheSize/2) {
		t.Error("a half full cache does not have space for more of its user, or has the same for another")
	}
}

// A user's vectors are loaded at the second search within a minute, one user at a time, and at most once a minute.
func TestLoadsOfActiveUsers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newUnitCache()
		for i, step := range []struct {
			user tenant.UserID
			wait time.Duration
			done bool // the load is done before
			want bool
		}{
			{user: 1},
			{user: 2},
			{user: 1, want: true},
			{user: 2},
			{user: 2, done: true, want: true},
			{user: 1, done: true},
			{user: 2},
			{user: 3},
			{user: 3, wait: unitsExpire + 1},
			{user: 1},
			{user: 1, want: true},
		} {
			<-time.After(step.wait)
			if step.done {
				c.loaded()
			}
			if got := c.missed(userKey(step.user)); got != step.want {
				t.Errorf("step %d, user %d: loads %t, want %t", i, step.user, got, step.want)
			}
		}
	})
}

// TestAddedUnitsDoNotOverwrite: several searches add different units to the same known ones.
func TestAddedUnitsDoNotOverwrite(t *testing.T) {
	t.Parallel()
	known := (&storedUnits{}).with(readIDs(1, 2, 3)).with(readIDs(4))
	got := map[retrieve.UnitID]*storedUnits{}
	for id := retrieve.UnitID(5); id < 10; id++ {
		read := readIDs(id)
		got[id] = known.with(read)
		read.added.ids[0] = 100 // the caller uses it again
		clear(read.added.content)
		clear(read.added.texts.content)
		clear(read.added.texts.units)
	}
	for id, v := range got {
		if want := []retrieve.UnitID{1, 2, 3, 4, id}; !slices.Equal(idsOf(v), want) || v.hash != 1^2^3^4^int64(id) || v.count != 5 || v.last != id {
			t.Errorf("after %d was added: %v, %+v, want %v", id, idsOf(v), v, want)
		}
		for _, h := range v.score([]float32{1}) {
			if math.Abs(h.Score-float64(h.ID)) > 0.01 {
				t.Errorf("unit %d has the vector of %v", h.ID, h.Score)
			}
			described, others := v.describe([]retrieve.UnitID{h.ID}, userState{})
			if len(described) != 1 || described[0].Text != strconv.FormatInt(int64(h.ID), 10) {
				t.Errorf("unit %d is described by %+v, and %v is not", h.ID, described, others)
			}
		}
	}
	if same := known.with(&readUnits{same: true}); same != known {
		t.Error("vectors were copied although none was added")
	}
}

// The number of parts grows with the logarithm of that of the units, and so does the number of times that each is copied.
func TestPartsAreMerged(t *testing.T) {
	t.Parallel()
	v, copied := &storedUnits{}, 0
	for id := retrieve.UnitID(1); id <= 1000; id++ {
		v = v.with(readIDs(id))
		if len(v.parts) > 10 {
			t.Fatalf("%d units have %d parts", id, len(v.parts))
		}
		copied += len(v.parts[len(v.parts)-1].ids)
	}
	if len(idsOf(v)) != 1000 || copied > 10*1000 {
		t.Errorf("%d units, %d were copied, want 1,000, each at most ten times", len(idsOf(v)), copied)
	}
}

func TestExistingUnits(t *testing.T) {
	t.Parallel()
	read := readIDs(2, 3, 5, 7, 8)
	read.missing.ids = []retrieve.UnitID{4, 6}
	read.count += 2
	all := (&storedUnits{}).with(read)
	for name, test := range map[string]struct {
		existing, scored, missing []retrieve.UnitID
	}{
		"Same":          {[]retrieve.UnitID{2, 3, 4, 5, 6, 7, 8}, []retrieve.UnitID{2, 3, 5, 7, 8}, []retrieve.UnitID{4, 6}},
		"Deleted":       {[]retrieve.UnitID{2, 4, 5, 6, 7, 8}, []retrieve.UnitID{2, 5, 7, 8}, []retrieve.UnitID{4, 6}},
		"Added":         {[]retrieve.UnitID{1, 2, 3, 4, 5, 6, 7, 8}, []retrieve.UnitID{2, 3, 5, 7, 8}, []retrieve.UnitID{1, 4, 6}},
		"Both":          {[]retrieve.UnitID{1, 2, 3, 5, 6, 7}, []retrieve.UnitID{2, 3, 5, 7}, []retrieve.UnitID{1, 6}},
		"ManyDeleted":   {[]retrieve.UnitID{2, 3, 5}, nil, nil},
		"NothingExists": {nil, nil, nil},
	} {
		v := all.among(test.existing, 9)
		if !slices.Equal(idsOf(v), test.scored) || !slices.Equal(v.missing.ids, test.missing) {
			t.Errorf("%s: %v without %v, want %v without %v", name, idsOf(v), v.missing.ids, test.scored, test.missing)
		}
		if test.scored != nil && (v.count != len(test.existing) || v.hash != 9 || v.last != 8) {
			t.Errorf("%s: %+v, want the number and the hash of the existing units", name, v)
		}
		// Deleted units may come back.
		if back := v.among([]retrieve.UnitID{2, 3, 4, 5, 6, 7, 8}, 9); test.scored != nil && !slices.Equal(idsOf(back), idsOf(all)) {
			t.Errorf("%s: %v after all came back, want %v", name, idsOf(back), idsOf(all))
		}
	}
}

// TestCountAbove: deleted units do not count, units without a vector do.
func TestCountAbove(t *testing.T) {
	t.Parallel()
	v := storedUnits{parts: []unitPart{{ids: []retrieve.UnitID{1, 3, 5}}, {ids: []retrieve.UnitID{4, 7}}}, deleted: map[retrieve.UnitID]bool{3: true, 5: true},
		missing: unitPart{ids: []retrieve.UnitID{2, 6}}, count: 5}
	for id, want := range map[retrieve.UnitID]int{0: 5, 1: 4, 3: 3, 4: 2, 5: 2, 6: 1, 7: 0} {
		if got := v.countAbove(id); got != want {
			t.Errorf("%d units above %d, want %d", got, id, want)
		}
	}
}

func TestBestFirst(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		scores := rapid.SliceOf(rapid.Float64Range(0, 1)).Draw(r, "scores")
		n := rapid.IntRange(0, len(scores)+2).Draw(r, "n")
		var hits []retrieve.Hit
		for i, s := range scores {
			hits = append(hits, retrieve.Hit{ID: retrieve.UnitID(i), Score: math.Round(4*s) / 4})
		}
		want := slices.Clone(hits)
		want = best(want, len(want))
		got := bestFirst(hits, n)
		if n = min(n, len(got)); !slices.Equal(got[:n], want[:n]) {
			r.Errorf("the first %d are %v, want %v", n, got[:n], want[:n])
		}
		if got = best(got, len(got)); !slices.Equal(got, want) {
			r.Errorf("%v, want all hits once: %v", got, want)
		}
	})
}
