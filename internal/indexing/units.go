package indexing

import (
	"slices"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// entriesOf returns the entries of the units that have a vector of the generation, each
// once, and removes the others from written.
func entriesOf(live []OwnedUnit, g placement.GenerationID, written map[retrieve.UnitID]bool) []Entry {
	var entries []Entry
	seen := make(map[retrieve.UnitID]bool, len(live))
	for _, u := range live {
		switch vector := u.Vectors[g]; {
		case vector == nil:
			delete(written, u.ID)
		case !seen[u.ID]:
			seen[u.ID] = true
			entries = append(entries, Entry{ID: u.ID, User: int64(u.User), Kind: u.Kind, Group: u.Group, Vector: vector})
		}
	}
	return entries
}

// compare returns the ids that were live both times, and those whose state changed in
// between.
func compare(ids, before, after []retrieve.UnitID) (settled, changed []retrieve.UnitID) {
	was, is := make(map[retrieve.UnitID]bool, len(before)), make(map[retrieve.UnitID]bool, len(after))
	for _, id := range before {
		was[id] = true
	}
	for _, id := range after {
		is[id] = true
	}
	for _, id := range ids {
		switch {
		case was[id] != is[id]:
			changed = append(changed, id)
		case is[id]:
			settled = append(settled, id)
		}
	}
	return settled, changed
}

// usersOf returns the users of the units, each once.
func usersOf(units []OwnedUnit) (users []tenant.UserID) {
	for _, u := range units {
		users = withUser(users, u.User)
	}
	return users
}

// withUser adds a user, unless it is there.
func withUser(users []tenant.UserID, u tenant.UserID) []tenant.UserID {
	if slices.Contains(users, u) {
		return users
	}
	return append(users, u)
}

func idsOf(units []OwnedUnit) []retrieve.UnitID {
	ids := make([]retrieve.UnitID, len(units))
	for i, u := range units {
		ids[i] = u.ID
	}
	return ids
}
