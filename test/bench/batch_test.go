package bench

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/test/installation"
)

// batches are vectors to delete with raw calls, and copies of the rows of a user.
type batches struct {
	*floor
	user string
	keys [][]int64 // by batch
}

// collection holds vectors without structures of ours.
const collection = "bench_raw"

// fill copies the rows of a user and creates n vectors in batches of a page.
func (f *floor) fill(t testing.TB, user string, n int) batches {
	t.Helper()
	f.makeCollection(t)
	out := batches{floor: f, user: user}
	for _, c := range copies {
		execute(t, f.server, "insert into bench_"+c.table+" select * from "+c.table+" where tenant_id = $1 and user_id = $2",
			f.server.Tenant, f.server.Users[user])
		execute(t, f.server, "vacuum analyze bench_"+c.table) // like the memories
	}
	r := rand.New(rand.NewPCG(2, 1))
	for first := 0; first < n; first += page {
		size := min(page, n-first)
		keys, vectors := make([]int64, size), make([][]float32, size)
		for i := range keys {
			keys[i], vectors[i] = int64(first+i+1), randomVector(r)
		}
		if _, err := f.milvus.Insert(t.Context(), collection, "", entity.NewColumnInt64("id", keys),
			entity.NewColumnFloatVector("embedding", installation.ModelDimensions, vectors)); err != nil {
			t.Fatal(err)
		}
		out.keys = append(out.keys, keys)
	}
	return out
}

// fillIndexed creates memories of a user directly, and their vectors in the index.
func (b *bench) fillIndexed(user string, n int) {
	b.Helper()
	newVolume(b.TB).load(b.TB, b.server, []holder{{b.server.Tenant, b.server.Users[user], n}}, true)
	rows, err := b.server.Owner.Query(b.Context(), "select id, group_id from units where tenant_id = $1 and user_id = $2 order by id",
		b.server.Tenant, b.server.Users[user])
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 1))
	entry := indexing.Entry{User: int64(b.server.Users[user]), Kind: retrieve.Memory}
	var entries []indexing.Entry
	if _, err := pgx.ForEachRow(rows, []any{&entry.ID, &entry.Group}, func() error {
		entry.Vector = randomVector(r)
		entries = append(entries, entry)
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	if err := b.server.Index.Upsert(b.Context(), b.server.Tenant, b.server.Placement, entries); err != nil {
		b.Fatal(err)
	}
}

func randomVector(r *rand.Rand) []float32 {
	v := make([]float32, installation.ModelDimensions)
	for i := range v {
		v[i] = r.Float32()
	}
	return v
}

func (f *floor) makeCollection(t testing.TB) {
	t.Helper()
	_ = f.milvus.DropCollection(t.Context(), collection) // of an earlier run that was killed
	schema := entity.NewSchema().WithName(collection).
		WithField(entity.NewField().WithName("id").WithDataType(entity.FieldTypeInt64).WithIsPrimaryKey(true)).
		WithField(entity.NewField().WithName("embedding").WithDataType(entity.FieldTypeFloatVector).WithDim(installation.ModelDimensions))
	if err := f.milvus.CreateCollection(t.Context(), schema, 1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.milvus.DropCollection(context.Background(), collection) })
	index, err := entity.NewIndexHNSW(entity.COSINE, 16, 200)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.milvus.CreateIndex(t.Context(), collection, "embedding", index, false); err != nil {
		t.Fatal(err)
	}
	if err := f.milvus.LoadCollection(t.Context(), collection, false); err != nil {
		t.Fatal(err)
	}
}

// deleteBatch deletes the copied rows of memories in one transaction and round trip, and the vectors of a batch.
func (b batches) deleteBatch(t testing.TB, i int, memories []string) (rows, vectors time.Duration) {
	t.Helper()
	ids := make([]uuid.UUID, len(memories))
	for j, id := range memories {
		ids[j] = uuid.MustParse(id)
	}
	var batch pgx.Batch
	for _, c := range copies {
		batch.Queue("delete from bench_"+c.table+" where tenant_id = $1 and user_id = $2 and "+c.column+" = any($3)",
			b.server.Tenant, b.server.Users[b.user], ids).Exec(func(deleted pgconn.CommandTag) error {
			if deleted.RowsAffected() < int64(len(ids)) {
				t.Fatalf("%d rows of bench_%s are deleted, want at least %d", deleted.RowsAffected(), c.table, len(ids))
			}
			return nil
		})
	}
	began := time.Now()
	if err := b.server.Owner.SendBatch(t.Context(), &batch).Close(); err != nil {
		t.Fatal(err)
	}
	rows = time.Since(began)
	keys := make([]string, len(b.keys[i]))
	for j, k := range b.keys[i] {
		keys[j] = strconv.FormatInt(k, 10)
	}
	began = time.Now()
	if err := b.milvus.Delete(t.Context(), collection, "", "id in ["+strings.Join(keys, ",")+"]"); err != nil {
		t.Fatal(err)
	}
	return rows, time.Since(began)
}
