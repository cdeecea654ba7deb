package postgres

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// oneByteVectors returns vectors of one byte, the id.
func oneByteVectors(ids ...retrieve.UnitID) *storedVectors {
	v := &storedVectors{}
	for _, id := range ids {
		v.ids, v.content = append(v.ids, id), append(v.content, byte(id))
		v.count, v.last, v.hash = v.count+1, id, v.hash^int64(id)
	}
	return v
}

func userKey(user tenant.UserID) vectorKey {
	return vectorKey{Scope: tenant.JobScope("t", user), kind: retrieve.Memory, generation: 1}
}

func TestCachedVectorsExpire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newVectorCache()
		none, _ := c.get(userKey(1))
		c.add(userKey(1), none, oneByteVectors(1, 2))
		<-time.After(vectorsExpire - 1)
		synctest.Wait()
		if v, ok := c.get(userKey(1)); !ok || !slices.Equal(v.ids, []retrieve.UnitID{1, 2}) {
			t.Errorf("before the expiry: %v, %t, want two units", v.ids, ok)
		}
		<-time.After(vectorsExpire - 1) // the search extended it
		synctest.Wait()
		if v, _ := c.get(userKey(1)); len(v.ids) != 2 {
			t.Errorf("after another search: %v, want two units", v.ids)
		}
		<-time.After(vectorsExpire + 1)
		synctest.Wait()
		if v, _ := c.get(userKey(1)); len(v.ids) != 0 || c.size != 0 {
			t.Errorf("after the expiry: %v in %d bytes, want nothing", v.ids, c.size)
		}
	})
}

func TestCachedVectorsAreSeparate(t *testing.T) {
	t.Parallel()
	c := newVectorCache()
	none, _ := c.get(userKey(1))
	c.add(userKey(1), none, oneByteVectors(1))
	for name, key := range map[string]vectorKey{
		"user":       userKey(2),
		"tenant":     {Scope: tenant.JobScope("u", 1), kind: retrieve.Memory, generation: 1},
		"kind":       {Scope: tenant.JobScope("t", 1), kind: retrieve.Chat, generation: 1},
		"generation": {Scope: tenant.JobScope("t", 1), kind: retrieve.Memory, generation: 2},
	} {
		if v, ok := c.get(key); len(v.ids) != 0 || !ok {
			t.Errorf("another %s has %v, want nothing", name, v.ids)
		}
	}
}

func TestVectorCacheIsBounded(t *testing.T) {
	t.Parallel()
	c := newVectorCache()
	large := &storedVectors{ids: []retrieve.UnitID{1}, content: make([]byte, maxCachedVectors/2), count: 1}
	for user := range tenant.UserID(3) { // three searches begin at once
		if _, ok := c.get(userKey(user)); !ok {
			t.Fatalf("user %d is not admitted to an empty cache", user)
		}
	}
	known := map[tenant.UserID]*storedVectors{}
	for user := range tenant.UserID(3) {
		known[user] = c.add(userKey(user), &storedVectors{}, large)
		if len(known[user].content) != len(large.content) {
			t.Errorf("user %d has %d bytes of vectors, want %d", user, len(known[user].content), len(large.content))
		}
	}
	if c.size > maxCachedVectors || len(c.users) != 1 {
		t.Errorf("%d bytes of %d users are kept, want one user", c.size, len(c.users))
	}
	if grown := c.add(userKey(0), known[0], large); len(grown.content) != 2*len(large.content) {
		t.Errorf("a user who does not fit any more has %d bytes of vectors, want %d", len(grown.content), 2*len(large.content))
	}
	if c.size != 0 || len(c.users) != 0 {
		t.Errorf("%d bytes of %d users are kept, want none", c.size, len(c.users))
	}
	c.remove(userKey(0))
	c.size = maxCachedVectors
	if _, ok := c.get(userKey(4)); ok {
		t.Error("another user is admitted to a full cache")
	}
}

// TestAddedVectorsDoNotOverwrite: several searches add different units to the same known ones.
func TestAddedVectorsDoNotOverwrite(t *testing.T) {
	t.Parallel()
	c := newVectorCache()
	none, _ := c.get(userKey(1))
	known := c.add(userKey(1), none, oneByteVectors(1, 2, 3))
	known = c.add(userKey(1), known, oneByteVectors(4))
	if cap(known.ids) == len(known.ids) || cap(known.content) == len(known.content) {
		t.Fatal("there is no spare capacity that could be overwritten")
	}
	got := map[retrieve.UnitID]*storedVectors{}
	for id := retrieve.UnitID(5); id < 10; id++ {
		got[id] = c.add(userKey(1), known, oneByteVectors(id))
	}
	for id, v := range got {
		if want := oneByteVectors(1, 2, 3, 4, id); !slices.Equal(v.ids, want.ids) || !slices.Equal(v.content, want.content) || v.hash != want.hash || v.count != want.count || v.last != want.last {
			t.Errorf("after %d was added: %v, want %v", id, v, want)
		}
	}
	if same := c.add(userKey(1), known, &storedVectors{}); same != known {
		t.Error("vectors were copied although none was added")
	}
}
