package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// deleteBatch is the number of ids in one delete statement.
const deleteBatch = 1000

// Memories implements memory.Store.
type Memories struct{ *DB }

var _ memory.Store = Memories{}

// Memories returns the store of memories.
func (d *DB) Memories() Memories { return Memories{d} }

// Prepare implements memory.Store.
func (m Memories) Prepare(ctx context.Context, scope tenant.Scope, in memory.NewMemory) (memory.Prepared, error) {
	var row db.PrepareMemoryRow
	err := m.DB.reserveScope(ctx, scope, func(_ db.DBTX, q *db.Queries) (err error) {
		row, err = q.PrepareMemory(ctx, preparation(scope, in))
		return err
	})
	if err != nil {
		return memory.Prepared{}, fmt.Errorf("prepare memory: %w", err)
	}
	return memory.Prepared{Bucket: row.Bucket, Duplicate: row.Duplicate, Units: unitIDs(row.Units)}, nil
}

// Create implements memory.Store. Each version counts toward the storage quota;
// the first version is the memory itself.
func (m Memories) Create(ctx context.Context, scope tenant.Scope, in memory.NewMemory) (memory.Created, error) {
	id, err := newID()
	if err != nil {
		return memory.Created{}, fmt.Errorf("generate id: %w", err)
	}
	for range attempts {
		var answer memoryAnswer
		if answer, err = m.create(ctx, scope, id, in); err == nil {
			return memory.Created(answer), nil
		}
		if !errors.Is(err, errChanged) {
			break
		}
		in.Prepared = memory.Prepared{}
	}
	return memory.Created{}, fmt.Errorf("create memory: %w", err)
}

func (m Memories) create(ctx context.Context, scope tenant.Scope, id string, in memory.NewMemory) (memoryAnswer, error) {
	var answer memoryAnswer
	err := m.DB.inScope(ctx, scope, func(tx pgx.Tx, q *db.Queries) error {
		answer = memoryAnswer{ID: id}
		retry := true
		err := respondOnce(ctx, q, scope, in.Request, &answer, func() error {
			retry = false
			p, err := prepareMemory(ctx, q, scope, in)
			if err != nil {
				return err
			}
			if p.Duplicate != "" {
				answer = memoryAnswer{ID: p.Duplicate, Duplicate: true}
				return advanceExtraction(ctx, q, scope, in.Result)
			}
			answer.Similar = in.Similar
			if err := m.insert(ctx, tx, q, scope, id, in, p); err != nil {
				return err
			}
			return advanceExtraction(ctx, q, scope, in.Result)
		})
		if err == nil && retry {
			answer.Similar, err = withTexts(ctx, tx, scope, answer.Similar)
		}
		return err
	})
	return answer, err
}

// withTexts returns those of the similar memories that exist, with their texts.
func withTexts(ctx context.Context, tx db.DBTX, scope tenant.Scope, similar []memory.SimilarMemory) ([]memory.SimilarMemory, error) {
	if len(similar) == 0 {
		return nil, nil
	}
	ids := parseIDs(collect(similar, func(m memory.SimilarMemory) string { return m.ID }))
	found, err := queryMemories(ctx, tx, len(ids), selectMemories(memoriesByID, ""), string(scope.Tenant), int64(scope.User), ids)
	if err != nil {
		return nil, fmt.Errorf("read similar memories: %w", err)
	}
	texts := make(map[string]string, len(found))
	for _, m := range found {
		texts[m.ID] = m.Text
	}
	var out []memory.SimilarMemory
	for _, m := range similar {
		if text, ok := texts[m.ID]; ok {
			m.Text = text
			out = append(out, m)
		}
	}
	return out, nil
}

// memoryAnswer is the stored response of a request that created a memory.
type memoryAnswer struct {
	ID        string `json:"id"`
	Duplicate bool   `json:"duplicate,omitempty"`

	Similar []memory.SimilarMemory `json:"similar,omitempty"`
}

func preparation(scope tenant.Scope, in memory.NewMemory) db.PrepareMemoryParams {
	p := db.PrepareMemoryParams{
		TenantID: string(scope.Tenant), UserID: int64(scope.User), BucketID: in.Bucket, Text: in.Text,
		AgentID: in.AgentID, RunID: in.RunID, Tags: orEmpty(in.Tags), Metadata: metadataColumn(in.Metadata), Units: integer(len(in.Units)),
	}
	for _, r := range in.Repeats {
		p.Repeats, p.Days = append(p.Repeats, r.Text), append(p.Days, r.Day)
	}
	return p
}

// prepareMemory reads what a new memory needs, without the lock on the usage row, unless it was read before and the memory is no duplicate:
// CreateMemory fails if the bucket or the user no longer exists, or if the text has been stored since. A memory that in.Repeats names may be stored
// at the same time. It creates the default bucket if that does not exist.
func prepareMemory(ctx context.Context, q *db.Queries, scope tenant.Scope, in memory.NewMemory) (db.PrepareMemoryRow, error) {
	if before := in.Prepared; before.Bucket != 0 && before.Duplicate == "" {
		return db.PrepareMemoryRow{Bucket: before.Bucket, Units: int64s(before.Units)}, nil
	}
	p := preparation(scope, in)
	row, err := q.PrepareMemory(ctx, p)
	if err != nil || row.Bucket != 0 {
		return row, err
	}
	if in.Bucket != 0 {
		return row, memory.ErrBucketNotFound
	}
	if _, err := q.LockUsage(ctx, p.TenantID); err != nil {
		return row, orUnknown(err, scope.Tenant)
	}
	ensureDefaultBucket(q, scope)
	if row, err = q.PrepareMemory(ctx, p); err == nil && row.Bucket == 0 {
		err = tenant.ErrUserErased
	}
	return row, err
}

// insert stores a memory that is not a duplicate, later in the transaction. CreateMemory may refuse it with notCreated.
func (m Memories) insert(
	ctx context.Context, tx pgx.Tx, q *db.Queries, scope tenant.Scope, id string, in memory.NewMemory, prepared db.PrepareMemoryRow,
) error {
	q.Later().CreateMemoryParts(memoryParts(scope, id, in, prepared))
	if err := m.DB.insertSync(ctx, tx, q, scope.Tenant, unitIDs(prepared.Units)); err != nil {
		return err
	}
	appendAudit(ctx, q, scope, audit.MemoryCreate, id)
	// The other writers of the tenant wait from this lock to the commit, so that everything else is written before.
	q.Later().AwaitUsage(string(scope.Tenant))
	q.Later().CreateMemory(db.CreateMemoryParams{
		TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: id, BucketID: prepared.Bucket,
		Text: in.Text, Tokens: integer(in.Tokens), Source: in.Source,
		AgentID: in.AgentID, RunID: in.RunID, Tags: orEmpty(in.Tags), Metadata: metadataColumn(in.Metadata), AttributeBytes: integer(in.Size()),
		Storage: int64(len(in.Text) + in.Size()), Embedded: m.embeddedTokens(in.Units),
	})
	link(q, scope, id, in.Links)
	return nil
}

func memoryParts(scope tenant.Scope, id string, in memory.NewMemory, prepared db.PrepareMemoryRow) db.CreateMemoryPartsParams {
	p := db.CreateMemoryPartsParams{
		TenantID: string(scope.Tenant), UserID: int64(scope.User), MemoryID: id, BucketID: prepared.Bucket, Text: in.Text, UnitIds: prepared.Units,
	}
	for _, u := range in.Units {
		p.Starts = append(p.Starts, integer(u.Start))
		p.Ends = append(p.Ends, integer(u.End))
		p.Lexicals = append(p.Lexicals, indexedWords(u.Lexical))
		p.Embeddings = append(p.Embeddings, encodeHalf(u.Vector))
		p.Generations = append(p.Generations, int16(u.Generation))
	}
	return p
}

// Delete implements memory.Store.
func (m Memories) Delete(ctx context.Context, scope tenant.Scope, ids []string) (memory.Deleted, error) {
	var out memory.Deleted
	err := m.DB.inScope(ctx, scope, func(tx pgx.Tx, q *db.Queries) error {
		out = memory.Deleted{}
		q.Later().AwaitUsage(string(scope.Tenant))
		all := parseIDs(ids)
		if err := m.remove(ctx, tx, q, scope, all, &out); err != nil {
			return err
		}
		if len(out.IDs) < len(all) {
			if err := deleteMerged(ctx, q, scope, all, &out); err != nil {
				return err
			}
		}
		if len(out.IDs) == 0 {
			return nil
		}
		appendAudit(ctx, q, scope, audit.MemoryDelete, slices.Concat(out.IDs, out.Merged)...)
		return nil
	})
	if err != nil {
		return memory.Deleted{}, fmt.Errorf("delete memories: %w", err)
	}
	return out, nil
}

// remove deletes memories and appends them to out. The transaction must hold the
// lock on the usage row.
func (m Memories) remove(ctx context.Context, tx pgx.Tx, q *db.Queries, scope tenant.Scope, ids []string, out *memory.Deleted) error {
	var bytes int64
	deltas := map[int64]int64{} // by bucket
	for batch := range slices.Chunk(ids, deleteBatch) {
		n, err := deleteMemories(ctx, q, scope, batch, out, deltas)
		if err != nil {
			return err
		}
		bytes += n
	}
	if len(out.IDs) == 0 {
		return nil
	}
	reserve(q, scope, -int64(len(out.IDs)), -bytes, 0)
	addToBuckets(q, scope, deltas)
	return m.DB.insertSync(ctx, tx, q, scope.Tenant, out.Units)
}

// deleteMemories deletes a batch, appends it to out, subtracts it from the deltas
// of its buckets, and returns the bytes of storage it released.
func deleteMemories(
	ctx context.Context, q *db.Queries, scope tenant.Scope, ids []string, out *memory.Deleted, deltas map[int64]int64,
) (int64, error) {
	q.Later().BeginDeletion()
	row, err := q.DeleteMemories(ctx, db.DeleteMemoriesParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), Ids: ids})
	if err != nil {
		return 0, err
	}
	out.Units = append(out.Units, unitIDs(row.Units)...)
	out.IDs, out.Merged = append(out.IDs, row.Ids...), append(out.Merged, row.Merged...)
	for _, bucket := range row.Buckets {
		deltas[bucket]--
	}
	return row.Bytes, nil
}

func unitIDs(ids []int64) []retrieve.UnitID {
	return collect(ids, func(id int64) retrieve.UnitID { return retrieve.UnitID(id) })
}
