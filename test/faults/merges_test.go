package faults_test

import (
	"context"
	"slices"

	"github.com/mnemo-dev/mnemo/api/client"
)

// hidden reports whether searches and lists must not find a memory: it was deleted or merged.
func hidden(o *object[memoryState]) bool {
	return !slices.ContainsFunc(o.is, memoryState.isListed)
}

func (s memoryState) isListed() bool { return s.Text != "" && s.Merged == "" }

// listed returns the memories whose state is known and that are not merged.
func (m *model) listed() []*object[memoryState] {
	return slices.DeleteFunc(certain(m.memories), hidden)
}

// mergedInto returns the memories that certainly were merged into one, and those of which this is not known.
func (m *model) mergedInto(id string) (known, unsure []*object[memoryState]) {
	other := func(s memoryState) bool { return s.Merged != id }
	for _, o := range m.memories {
		switch {
		case !slices.ContainsFunc(o.is, other):
			known = append(known, o)
		case slices.ContainsFunc(o.is, func(s memoryState) bool { return !other(s) }):
			unsure = append(unsure, o)
		}
	}
	return known, unsure
}

// remove records the deletion of a memory with those that were merged into it.
func (m *model) remove(how outcome, o *object[memoryState]) {
	known, unsure := m.mergedInto(o.id)
	o.audited("memory.delete", how)
	o.change(how, memoryState{})
	for _, child := range known {
		m.remove(how, child)
	}
	if how == refused {
		return
	}
	for _, child := range unsure {
		m.remove(unknown, child)
	}
}

// freeze stops the use of a memory, whose state stays as it is: an operation on those that were merged into it may
// still happen.
func freeze(o *object[memoryState]) { o.maybe(o.is[0]) }

// mergeMemories merges memories into one, or each into the next.
func (l *lane) mergeMemories(ctx context.Context) {
	objects, _, _ := l.several(2 + l.rand.IntN(3))
	if len(objects) < 2 {
		return
	}
	if l.rand.IntN(2) == 0 {
		l.merge(ctx, objects[0], objects[1:])
		return
	}
	for i, o := range objects[1:] {
		if l.merge(ctx, o, objects[i:i+1]) != acknowledged {
			return
		}
	}
}

func (l *lane) merge(ctx context.Context, kept *object[memoryState], merged []*object[memoryState]) outcome {
	keys, ids := namesOf(merged)
	api := l.api()
	how := l.do(ctx, "merge memories", append(keys, kept.key), func(ctx context.Context) error {
		_, err := api.MergeMemories(ctx, kept.id, client.MergeMemoriesRequest{MemoryIds: ids})
		return err
	})
	for _, o := range merged {
		next := o.is[0]
		next.Merged = kept.id
		o.audited("memory.merge", how)
		o.change(how, next)
	}
	l.afterMerge(ctx, how, kept, group{"merge memories", keys, func(s memoryState) bool { return s.Merged == kept.id }})
	return how
}

// unmergeMemories restores one or all of the memories that were merged into one, which may be merged itself.
func (l *lane) unmergeMemories(ctx context.Context) {
	o := pick(l, slices.DeleteFunc(certain(l.memories), func(o *object[memoryState]) bool { return o.is[0].Merged == "" }))
	if o == nil {
		return
	}
	var kept *object[memoryState]
	for _, m := range l.memories {
		if m.id == o.is[0].Merged && m.certain() {
			kept = m
		}
	}
	if kept == nil {
		return
	}
	restored, request := []*object[memoryState]{o}, client.UnmergeMemoriesRequest{MemoryIds: []string{o.id}}
	if known, unsure := l.mergedInto(kept.id); len(unsure) == 0 && l.rand.IntN(2) == 0 {
		restored, request.MemoryIds = known, nil
		if slices.ContainsFunc(known, func(o *object[memoryState]) bool { return !o.certain() }) {
			return
		}
	}
	keys, _ := namesOf(restored)
	api := l.api()
	how := l.do(ctx, "unmerge memories", append(keys, kept.key), func(ctx context.Context) error {
		answer, err := api.UnmergeMemories(ctx, kept.id, request)
		if err == nil && int(answer.Body.RestoredCount) != len(restored) {
			l.violate(lost, l.String(), kept.key, "unmerge restored %v, want %v", answer.Body.MemoryIds, keys)
		}
		return err
	})
	for _, o := range restored {
		next := o.is[0]
		next.Merged = ""
		o.audited("memory.unmerge", how)
		o.change(how, next)
	}
	l.afterMerge(ctx, how, kept, group{"unmerge memories", keys, memoryState.isListed})
}

// afterMerge checks memories that were merged or restored, or records that this is not known.
func (l *lane) afterMerge(ctx context.Context, how outcome, kept *object[memoryState], g group) {
	switch how {
	case acknowledged:
		l.checkMemory(ctx, l.memories[g.keys[0]])
		l.checkMemory(ctx, kept)
	case unknown:
		freeze(kept)
		l.groups = append(l.groups, g)
	case refused:
	}
}

// namesOf returns the keys and ids of memories.
func namesOf(objects []*object[memoryState]) (keys, ids []string) {
	for _, o := range objects {
		keys, ids = append(keys, o.key), append(ids, o.id)
	}
	return keys, ids
}
