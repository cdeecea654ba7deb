package faults_test

import (
	"fmt"
	"maps"
	"slices"
)

// memoryState is a possible state of a memory. The zero value is one that does not exist.
type memoryState struct {
	Text    string
	Version int64
	Bucket  string // name; "" is the default bucket
	Merged  string // id of the memory into which it was merged
}

// chatState is a possible state of a conversation. The zero value is one that does not
// exist.
type chatState struct {
	Title    string
	Messages string // the texts in order, one per line
	Excluded bool
}

// object is a memory, conversation or bucket in the model. Its key is a word that
// occurs in all its texts.
type object[S comparable] struct {
	key, id string // the id is "" until it is known
	// is lists the possible states. There are several after an operation with an
	// unknown outcome. It may still happen, so the object is not used any more.
	is []S
	// late is set if a request of unknown outcome may still create it: it may reappear
	// after the whole account was erased.
	late bool
	// acked and unsure count the changes that were acknowledged, and those of unknown
	// outcome, by the verb of their audit record.
	acked, unsure map[string]int64
}

// audited counts a change for the comparison with the audit log.
func (o *object[S]) audited(verb string, how outcome) {
	if o.acked == nil {
		o.acked, o.unsure = map[string]int64{}, map[string]int64{}
	}
	switch how {
	case acknowledged:
		o.acked[verb]++
	case unknown:
		o.unsure[verb]++
	case refused:
	}
}

// certain reports whether the object exists and its state is known.
func (o *object[S]) certain() bool {
	var none S
	return len(o.is) == 1 && o.is[0] != none
}

// gone reports whether the object certainly does not exist.
func (o *object[S]) gone() bool {
	var none S
	return len(o.is) == 1 && o.is[0] == none
}

// set records an acknowledged change, and maybe one with an unknown outcome.
func (o *object[S]) set(next S)   { o.is = []S{next} }
func (o *object[S]) maybe(next S) { o.is = append(o.is, next) }

// change records a change with an outcome.
func (o *object[S]) change(how outcome, next S) {
	switch how {
	case acknowledged:
		o.set(next)
	case unknown:
		o.maybe(next)
	case refused:
	}
}

// erase records that the account was erased.
func (o *object[S]) erase(how outcome) {
	var none S
	switch {
	case how == refused:
	case how == acknowledged && !o.late:
		o.set(none)
	default:
		o.maybe(none)
	}
}

// group is an operation that changes several objects, all or none.
type group struct {
	what string
	keys []string
	// happened reports whether it changed an object in this state.
	happened func(memoryState) bool
}

// model is what a user's account must contain according to the history.
type model struct {
	memories map[string]*object[memoryState]
	chats    map[string]*object[chatState]
	buckets  map[string]*object[string]
	groups   []group
}

func newModel() *model {
	return &model{memories: map[string]*object[memoryState]{}, chats: map[string]*object[chatState]{}, buckets: map[string]*object[string]{}}
}

// certain returns the objects that a user may use, ordered by key.
func certain[S comparable](objects map[string]*object[S]) []*object[S] {
	var out []*object[S]
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		if o := objects[key]; o.certain() {
			out = append(out, o)
		}
	}
	return out
}

// erase records that the account was erased.
func (m *model) erase(how outcome) {
	for _, o := range m.memories {
		o.erase(how)
	}
	for _, o := range m.chats {
		o.erase(how)
	}
	for _, o := range m.buckets {
		o.erase(how)
	}
	if how != refused {
		m.groups = nil
	}
}

// compare compares the possible states with the found one. It returns the kind of the
// violation, or "".
func compare[S comparable](o *object[S], found S) (kind, text string) {
	var none S
	switch {
	case slices.Contains(o.is, found):
		return "", ""
	case o.gone():
		return reappeared, fmt.Sprintf("was deleted, found %+v", found)
	case found == none:
		return lost, fmt.Sprintf("not found, want %+v", o.is)
	}
	return lost, fmt.Sprintf("found %+v, want %+v", found, o.is)
}
