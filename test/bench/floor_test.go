package bench

import (
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"github.com/mnemo-dev/mnemo/internal/embed"
	"github.com/mnemo-dev/mnemo/internal/milvus/milvustest"
	"github.com/mnemo-dev/mnemo/internal/testkit"
	"github.com/mnemo-dev/mnemo/test/installation"
)

// floor are the raw calls that Mnemo's operations consist of.
type floor struct {
	server   *installation.Server
	embedder *embed.Local
	milvus   milvustest.Client
	empty    string // URL of an empty handler
	inserted int    // memories
}

// copies are the tables of which a memory has rows, with the column that has its id. They are copied with their indexes, but without
// triggers, policies, foreign keys and partitions.
var copies = []struct{ table, column string }{{"memory_versions", "memory_id"}, {"units", "memory_id"}, {"memories", "id"}}

func newFloor(t testing.TB, s *installation.Server) *floor {
	t.Helper()
	f := &floor{server: s, milvus: milvustest.Open(t), empty: serveEmpty(t)}
	var err error
	if f.embedder, err = embed.OpenLocal(embed.LocalConfig{Dir: testkit.ModelDir(t), Library: testkit.ONNXRuntime(t)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.embedder.Close() })
	for _, c := range copies {
		execute(t, s, "create table bench_"+c.table+" (like "+c.table+" including indexes including defaults)")
	}
	return f
}

// serveEmpty serves an empty handler as the server does.
func serveEmpty(t testing.TB) string {
	t.Helper()
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Get("/", func(c *fiber.Ctx) error { return c.SendStatus(fiber.StatusOK) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = app.Listener(listener) }()
	t.Cleanup(func() { _ = app.Shutdown() })
	return "http://" + listener.Addr().String() + "/"
}

// query embeds a query.
func (f *floor) query(t testing.TB, text string) (vector []float32, took time.Duration) {
	t.Helper()
	began := time.Now()
	vector, err := f.embedder.EmbedQuery(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	return vector, time.Since(began)
}

// passage embeds a memory.
func (f *floor) passage(t testing.TB, text string) (vector []float32, took time.Duration) {
	t.Helper()
	began := time.Now()
	vectors, err := f.embedder.Embed(t.Context(), []string{text})
	if err != nil {
		t.Fatal(err)
	}
	return vectors[0], time.Since(began)
}

// insert commits the rows of a memory, in one round trip.
func (f *floor) insert(t testing.TB, user, text string, vector []float32) time.Duration {
	t.Helper()
	tenant, owner, id, content := f.server.Tenant, f.server.Users[user], uuid.New(), make([]byte, 2*len(vector))
	f.inserted++
	var batch pgx.Batch
	batch.Queue("insert into bench_memories (tenant_id, user_id, id, seq, bucket_id, text, tokens) values ($1, $2, $3, $4, 1, $5, $6)",
		tenant, owner, id, f.inserted, text, len(text)/4)
	batch.Queue("insert into bench_memory_versions (tenant_id, user_id, memory_id, version, text) values ($1, $2, $3, 1, $4)", tenant, owner, id, text)
	batch.Queue(`insert into bench_units (tenant_id, user_id, kind, group_id, memory_id, span_start, span_end, tsv, embedding, generation_id)
		values ($1, $2, 1, 1, $3, 0, $4, to_tsvector('english', $5), $6, 0)`, tenant, owner, id, len(text), text, content)
	began := time.Now()
	if err := f.server.Owner.SendBatch(t.Context(), &batch).Close(); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}

// search asks Milvus for the ten best units of a user and PostgreSQL for their texts.
func (f *floor) search(t testing.TB, user string, vector []float32) (index, fetch time.Duration) {
	t.Helper()
	params, err := entity.NewIndexHNSWSearchParam(64)
	if err != nil {
		t.Fatal(err)
	}
	place := f.server.Placement
	began := time.Now()
	found, err := f.milvus.Search(t.Context(), place.Collection, []string{place.Partition},
		"user_id == "+strconv.FormatInt(int64(f.server.Users[user]), 10)+" && kind == 1", nil,
		[]entity.Vector{entity.FloatVector(vector)}, "embedding", entity.COSINE, 10, params, client.WithSearchQueryConsistencyLevel(entity.ClBounded))
	if err != nil {
		t.Fatal(err)
	}
	index = time.Since(began)
	ids := found[0].IDs.(*entity.ColumnInt64).Data()
	began = time.Now()
	// Without statistics, a join may read all units of the user.
	rows, err := f.server.Owner.Query(t.Context(), `select m.id, m.text from unnest($3::bigint[]) w(id)
		cross join lateral (select memory_id from units u where u.tenant_id = $1 and u.user_id = $2 and u.id = w.id limit 1) u
		cross join lateral (select id, text from memories m where m.tenant_id = $1 and m.user_id = $2 and m.id = u.memory_id limit 1) m`,
		f.server.Tenant, f.server.Users[user], ids)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for rows.Next() {
		n++
	}
	if rows.Err() != nil || n != len(ids) {
		t.Fatalf("%d rows of %d, %v", n, len(ids), rows.Err())
	}
	return index, time.Since(began)
}

// list selects those columns of the oldest memories of a user that the response of a listing contains.
func (f *floor) list(t testing.TB, user string, limit int) time.Duration {
	t.Helper()
	var id uuid.UUID
	var supersededBy *uuid.UUID
	var text, agent, run string
	var bucket int64
	var created time.Time
	var tags []string
	var metadata []byte
	began := time.Now()
	rows, err := f.server.Owner.Query(t.Context(), `select id, text, bucket_id, created_at, superseded_by, agent_id, run_id, tags, metadata
		from memories where tenant_id = $1 and user_id = $2 order by seq limit $3`, f.server.Tenant, f.server.Users[user], limit)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pgx.ForEachRow(rows, []any{&id, &text, &bucket, &created, &supersededBy, &agent, &run, &tags, &metadata}, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}

// pick selects one row by its primary key.
func (f *floor) pick(t testing.TB, user string) time.Duration {
	t.Helper()
	began := time.Now()
	var n int64
	if err := f.server.Owner.QueryRow(t.Context(), "select memory_seq from users where tenant_id = $1 and id = $2",
		f.server.Tenant, f.server.Users[user]).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}
