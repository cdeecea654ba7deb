package apiserver

import (
	"context"
	"slices"
	"strings"

	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func (f fakeMemories) Update(_ context.Context, scope tenant.Scope, e memory.Edit) (int, error) {
	u, end, err := f.begin(scope)
	defer end()
	if err != nil {
		return 0, err
	}
	i := slices.IndexFunc(u.memories, func(m memory.Memory) bool { return m.ID == e.ID })
	if i < 0 {
		return 0, memory.ErrMemoryNotFound
	}
	m := &u.memories[i]
	if e.Text != nil && *e.Text != m.Text {
		if err := memory.CheckUpdate(m.Version, e.UpdateInput); err != nil {
			return 0, err
		}
	}
	if e.Bucket != (memory.BucketRef{}) {
		to, err := u.bucket(e.Bucket)
		if err != nil {
			return 0, err
		}
		m.BucketID, m.BucketName = to.ID, to.Name
	}
	m.Attributes = e.Apply(m.Attributes)
	if e.Text != nil && *e.Text != m.Text {
		m.Text = *e.Text
		m.Version++
	}
	return m.Version, nil
}

// bucket finds a bucket by id, name or both.
func (u *fakeUser) bucket(b memory.BucketRef) (memory.Bucket, error) {
	for _, o := range u.buckets {
		if (b.ID == 0 || b.ID == o.ID) && (b.Name == "" || strings.EqualFold(b.Name, o.Name)) {
			return o, nil
		}
	}
	return memory.Bucket{}, memory.ErrBucketNotFound
}

func (f fakeMemories) Move(_ context.Context, scope tenant.Scope, in memory.MoveInput) ([]string, error) {
	u, end, err := f.begin(scope)
	defer end()
	if err != nil {
		return nil, err
	}
	var rejected, moved []string
	for _, id := range in.IDs {
		if !slices.ContainsFunc(u.memories, func(m memory.Memory) bool { return m.ID == id }) {
			rejected = append(rejected, id)
		} else if !slices.Contains(moved, id) {
			moved = append(moved, id)
		}
	}
	if rejected != nil {
		return nil, memory.MissingMemories(rejected)
	}
	_, err = u.bucket(in.Bucket)
	return moved, err
}

func (f fakeMemories) Versions(_ context.Context, scope tenant.Scope, id string, _, _ int) ([]memory.Version, bool, error) {
	u, end, err := f.begin(scope)
	defer end()
	for _, m := range u.memories {
		if m.ID == id {
			return []memory.Version{{Version: m.Version, Text: m.Text, CreatedAt: m.CreatedAt}}, false, err
		}
	}
	if err == nil {
		err = memory.ErrMemoryNotFound
	}
	return nil, false, err
}

func (f fakeMemories) UpdateBucket(_ context.Context, scope tenant.Scope, id int64, b memory.BucketUpdate) error {
	u, end, err := f.begin(scope)
	defer end()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(u.buckets, func(o memory.Bucket) bool { return o.ID == id })
	if i < 0 {
		return memory.ErrBucketNotFound
	}
	if err := memory.CheckBucketUpdate(u.buckets[i], b); err != nil {
		return err
	}
	if b.Name != nil {
		u.buckets[i].Name = *b.Name
	}
	return nil
}

func (f fakeMemories) DeleteBucket(_ context.Context, scope tenant.Scope, id int64) (int, error) {
	u, end, err := f.begin(scope)
	defer end()
	if err != nil {
		return 0, err
	}
	i := slices.IndexFunc(u.buckets, func(o memory.Bucket) bool { return o.ID == id })
	if i < 0 {
		return 0, memory.ErrBucketNotFound
	}
	if err := memory.CheckBucketDelete(u.buckets[i]); err != nil {
		return 0, err
	}
	u.buckets = slices.Delete(u.buckets, i, i+1)
	return 0, nil
}
