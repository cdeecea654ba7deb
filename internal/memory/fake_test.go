package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/filter"
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

var alice = tenant.Identity{
	Scope:     tenant.Scope{Tenant: "t1", User: 1},
	Placement: placement.Location{Collection: "c", Partition: "p"},
	Quota:     tenant.Quota{PageTokens: 1000},
}

// fakes implements the dependencies of a Service with one user's memories in a slice.
// The errors are returned by the dependency that they name.
type fakes struct {
	memories   []Memory
	buckets    []Bucket
	ranking    retrieve.Result
	asked      retrieve.Query
	created    NewMemory
	removed    []retrieve.UnitID
	edited     Edit
	moved      MoveInput
	renamed    BucketUpdate
	similar    []retrieve.Similar
	embeddings int
	newer      map[string]string
	merged     MergeInput
	unmerged   UnmergeInput
	listed     int

	storeFails, prepareFails, indexFails, embedFails, searchFails, bucketsFail error
}

func newService(f *fakes) *Service {
	return NewService(Config{Store: f, Buckets: f, Searcher: f, Index: fakeIndex{f: f}, Embedders: retrieve.Embedders{0: f},
		CountTokens: func(text string) int { return len(strings.Fields(text)) }})
}

func (f *fakes) Prepare(_ context.Context, _ tenant.Scope, m NewMemory) (Prepared, error) {
	return Prepared{Bucket: 7, Units: make([]retrieve.UnitID, len(m.Units))}, f.prepareFails
}

func (f *fakes) Create(_ context.Context, _ tenant.Scope, m NewMemory) (Created, error) {
	f.created = m
	return Created{ID: "new", Similar: m.Similar}, f.storeFails
}

func (f *fakes) List(_ context.Context, _ tenant.Scope, q Filter) ([]Memory, bool, error) {
	f.listed += len(f.memories)
	list := slices.Clone(f.memories)
	if q.Newest {
		slices.Reverse(list)
	}
	if q.After != 0 {
		last := slices.IndexFunc(list, func(m Memory) bool { return m.Seq == q.After })
		list = list[last+1:]
	}
	list = list[min(q.Skip, len(list)):]
	n := min(q.Limit, len(list))
	return list[:n], len(list) > n, f.storeFails
}

func (f *fakes) ByID(_ context.Context, _ tenant.Scope, ids []string, _ time.Time) ([]Memory, error) {
	var out []Memory
	for _, m := range f.memories {
		if slices.Contains(ids, m.ID) {
			out = append(out, m)
		}
	}
	return out, f.storeFails
}

func (f *fakes) Count(context.Context, tenant.Scope, filter.Filter) (int, error) {
	return len(f.memories), f.storeFails
}

func (f *fakes) Matching(_ context.Context, _ tenant.Scope, _ filter.Filter, limit int) ([]string, error) {
	var ids []string
	for _, m := range f.memories[:min(limit, len(f.memories))] {
		ids = append(ids, m.ID)
	}
	return ids, f.storeFails
}

func (f *fakes) Groups(context.Context, tenant.Scope, int, int) ([]Group, int, error) {
	return []Group{{Kind: "user", Name: "u"}}, 1, f.storeFails
}

func (f *fakes) Labels(context.Context, tenant.Scope) (Labels, error) {
	return Labels{Sources: []string{"test"}}, f.storeFails
}

func (f *fakes) Newer(_ context.Context, _ tenant.Scope, ids []string, _ Filter) (map[string]string, error) {
	for _, id := range ids {
		if f.newer[id] == "" {
			return nil, fmt.Errorf("memory %s is not superseded", id)
		}
	}
	newer := maps.Clone(f.newer)
	maps.DeleteFunc(newer, func(id, _ string) bool { return !slices.Contains(ids, id) })
	return newer, f.storeFails
}

func (f *fakes) Similar(_ context.Context, _ tenant.Scope, _ placement.Location, q retrieve.Query, embed func() []float32) ([]retrieve.Similar, error) {
	f.asked = q
	if embed() == nil {
		return nil, nil
	}
	return slices.Clone(f.similar), f.searchFails
}

func (f *fakes) Delete(_ context.Context, _ tenant.Scope, ids []string) (Deleted, error) {
	if f.storeFails != nil {
		return Deleted{}, f.storeFails
	}
	var out Deleted
	f.memories = slices.DeleteFunc(f.memories, func(m Memory) bool {
		if !slices.Contains(ids, m.ID) {
			return false
		}
		out.IDs = append(out.IDs, m.ID)
		out.Units = append(out.Units, retrieve.UnitID(m.Seq))
		for i := range m.Merged {
			out.Merged = append(out.Merged, fmt.Sprint(m.ID, " merged ", i))
		}
		return true
	})
	return out, nil
}

// DeleteUndoable deletes memories; Undelete knows one deletion, "undo".
func (f *fakes) DeleteUndoable(ctx context.Context, scope tenant.Scope, ids []string) (Deleted, error) {
	out, err := f.Delete(ctx, scope, ids)
	out.Undo = "undo"
	return out, err
}

func (f *fakes) Undelete(_ context.Context, _ tenant.Scope, deletion string) ([]string, error) {
	if deletion != "undo" {
		return nil, fault.New(fault.NotFound, "no deletion %s", deletion)
	}
	return []string{"m1", "m2"}, f.storeFails
}

func (f *fakes) Merge(_ context.Context, _ tenant.Scope, in MergeInput) (MergeResult, error) {
	f.merged = in
	return MergeResult{IDs: in.IDs, Units: []retrieve.UnitID{7}}, f.storeFails
}

func (f *fakes) Unmerge(_ context.Context, _ tenant.Scope, in UnmergeInput) ([]string, error) {
	f.unmerged = in
	return []string{"m1"}, f.storeFails
}

func (f *fakes) ListMerged(context.Context, tenant.Scope, string) ([]MergedMemory, error) {
	return []MergedMemory{{ID: "m8", Text: "merged"}}, f.storeFails
}

// GetMerged knows one merged memory, "m9".
func (f *fakes) GetMerged(_ context.Context, _ tenant.Scope, id string) (Memory, error) {
	if id != "m9" {
		return Memory{}, ErrMemoryNotFound
	}
	return Memory{ID: id, MergedInto: "m0"}, nil
}

func (f *fakes) ListBuckets(context.Context, tenant.Scope) ([]Bucket, error) {
	return f.buckets, f.bucketsFail
}

func (f *fakes) CreateBucket(_ context.Context, _ tenant.Scope, b BucketInput) (int64, error) {
	f.buckets = append(f.buckets, Bucket{ID: int64(len(f.buckets) + 1), Name: b.Name})
	return int64(len(f.buckets)), f.storeFails
}

func (f *fakes) Search(_ context.Context, _ tenant.Scope, _ placement.Location, q retrieve.Query) (retrieve.Result, error) {
	f.asked = q
	out := f.ranking
	out.Found = out.Found[:min(q.Limit, len(out.Found))]
	return out, nil
}

func (f *fakes) Embed(_ context.Context, texts []string) ([][]float32, error) {
	return make([][]float32, len(texts), len(texts)+1), f.embedFails
}
func (f *fakes) EmbedQuery(context.Context, string) ([]float32, error) { return nil, f.embedFails }
func (f *fakes) Model() string                                         { return "fake" }
func (f *fakes) Dimensions() int                                       { return 1 }

// fakeIndex implements Delete of the index, which would clash with that of the store.
type fakeIndex struct {
	indexing.Store
	f *fakes
}

func (i fakeIndex) Delete(_ context.Context, _ tenant.ID, _ placement.Location, ids []retrieve.UnitID) error {
	i.f.removed = append(i.f.removed, ids...)
	return i.f.indexFails
}

// filled returns fakes with n memories of a hundred tokens each, ranked in reverse order.
func filled(n int) *fakes {
	f := &fakes{buckets: []Bucket{{ID: 1, Name: DefaultBucket, Default: true}}}
	for i := range n {
		id := fmt.Sprintf("m%d", i)
		f.memories = append(f.memories, Memory{ID: id, Seq: int64(i), BucketID: 1, Tokens: 100})
		f.ranking.Found = append([]retrieve.Found{{Owner: id}}, f.ranking.Found...)
	}
	return f
}

func ids(list []Memory) []string {
	out := []string{}
	for _, m := range list {
		out = append(out, m.ID)
	}
	return out
}

func wantKind(t *testing.T, err error, want fault.Kind) {
	t.Helper()
	if err == nil || fault.KindOf(err) != want {
		t.Fatalf("error = %v, want one of kind %v", err, want)
	}
}
