package apiserver

import (
	"context"
	"slices"

	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func (f fakeMemories) Merge(_ context.Context, scope tenant.Scope, in memory.MergeInput) (memory.MergeResult, error) {
	u, end, err := f.begin(scope)
	defer end()
	if err != nil {
		return memory.MergeResult{}, err
	}
	named := func(id string) func(memory.Memory) bool { return func(m memory.Memory) bool { return m.ID == id } }
	if i := slices.IndexFunc(u.merged, named(in.Kept)); i >= 0 {
		return memory.MergeResult{}, memory.MergedElsewhere(u.merged[i].MergedInto)
	}
	if !slices.ContainsFunc(u.memories, named(in.Kept)) {
		return memory.MergeResult{}, memory.ErrMemoryNotFound
	}
	var rejected []string
	for _, id := range in.IDs {
		if !slices.ContainsFunc(u.memories, named(id)) {
			rejected = append(rejected, id)
		}
	}
	if rejected != nil {
		return memory.MergeResult{}, memory.MissingMerge(rejected)
	}
	out := memory.MergeResult{IDs: slices.Compact(slices.Clone(in.IDs)), Units: []retrieve.UnitID{1}}
	for _, id := range out.IDs {
		i := slices.IndexFunc(u.memories, named(id))
		m := u.memories[i]
		m.MergedInto = in.Kept
		u.merged, u.memories = append(u.merged, m), slices.Delete(u.memories, i, i+1)
	}
	u.countMerged(in.Kept)
	return out, nil
}

// countMerged sets the number of memories merged into one.
func (u *fakeUser) countMerged(kept string) {
	for i := range u.memories {
		if u.memories[i].ID != kept {
			continue
		}
		u.memories[i].Merged = 0
		for _, m := range u.merged {
			if m.MergedInto == kept {
				u.memories[i].Merged++
			}
		}
	}
}

func (f fakeMemories) Unmerge(_ context.Context, scope tenant.Scope, in memory.UnmergeInput) ([]string, error) {
	u, end, err := f.begin(scope)
	defer end()
	if err != nil {
		return nil, err
	}
	kept := func(m memory.Memory) bool { return m.ID == in.Kept }
	into := func(m memory.Memory) bool { return m.MergedInto == in.Kept }
	switch i := slices.IndexFunc(u.merged, kept); {
	case i >= 0 && len(in.IDs) == 0 && !slices.ContainsFunc(u.merged, into):
		return nil, memory.MergedItself(u.merged[i].MergedInto)
	case i < 0 && !slices.ContainsFunc(u.memories, kept):
		return nil, memory.ErrMemoryNotFound
	}
	var rejected, out []string
	for _, id := range in.IDs {
		if !slices.ContainsFunc(u.merged, func(m memory.Memory) bool { return m.ID == id && m.MergedInto == in.Kept }) {
			rejected = append(rejected, id)
		}
	}
	if rejected != nil {
		return nil, memory.MissingMerged(rejected)
	}
	u.merged = slices.DeleteFunc(u.merged, func(m memory.Memory) bool {
		if m.MergedInto != in.Kept || len(in.IDs) > 0 && !slices.Contains(in.IDs, m.ID) {
			return false
		}
		m.MergedInto = ""
		u.memories, out = append(u.memories, m), append(out, m.ID)
		return true
	})
	slices.SortFunc(u.memories, func(a, b memory.Memory) int { return int(a.Seq - b.Seq) })
	u.countMerged(in.Kept)
	return out, nil
}

func (f fakeMemories) ListMerged(_ context.Context, scope tenant.Scope, id string) ([]memory.MergedMemory, error) {
	u, end, err := f.begin(scope)
	defer end()
	var out []memory.MergedMemory
	for _, m := range u.merged {
		if m.MergedInto == id {
			out = append(out, memory.MergedMemory{ID: m.ID, Text: m.Text, CreatedAt: m.CreatedAt, MergedAt: noon})
		}
	}
	return out, err
}

func (f fakeMemories) GetMerged(_ context.Context, scope tenant.Scope, id string) (memory.Memory, error) {
	u, end, err := f.begin(scope)
	defer end()
	if err != nil {
		return memory.Memory{}, err
	}
	for _, m := range u.merged {
		if m.ID == id {
			return m, nil
		}
	}
	return memory.Memory{}, memory.ErrMemoryNotFound
}
