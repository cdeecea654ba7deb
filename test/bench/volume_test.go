package bench

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mnemo-dev/mnemo/internal/embed"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/testkit"
	"github.com/mnemo-dev/mnemo/test/installation"
)

// volume generates memories from a seed. Only the first vectors are computed by the model; the others are near one of
// them, so that many are distributed like real ones.
type volume struct {
	writer
	vectors [][]float32
	made    uint64
}

const (
	// modelVectors is the number of vectors that the model computes.
	modelVectors = 512
	// spread is the standard deviation of each coordinate from that of a computed vector. The cosine of both is about 0.93.
	spread = 0.02
	// loadBatch is the number of memories per statement.
	loadBatch = 2000
)

func newVolume(tb testing.TB) *volume {
	tb.Helper()
	model, err := embed.OpenLocal(embed.LocalConfig{Dir: testkit.ModelDir(tb), Library: testkit.ONNXRuntime(tb)})
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = model.Close() }()
	v := &volume{writer: newWriter(3)}
	texts := make([]string, modelVectors)
	if !*full {
		texts = texts[:16]
	}
	for i := range texts {
		texts[i] = v.memory()
	}
	if v.vectors, err = model.Embed(tb.Context(), texts); err != nil {
		tb.Fatal(err)
	}
	return v
}

// vector returns the next vector, as units store it.
func (v *volume) vector() []byte {
	near := v.vectors[v.made%uint64(len(v.vectors))]
	v.made++
	sum := make([]float64, len(near))
	var norm float64
	for i, x := range near {
		sum[i] = float64(x) + spread*v.NormFloat64()
		norm += sum[i] * sum[i]
	}
	out := make([]byte, 0, 2*len(near))
	for _, x := range sum {
		out = binary.LittleEndian.AppendUint16(out, half(float32(x/math.Sqrt(norm))))
	}
	return out
}

// half returns a number below 1 in half precision, rounded toward 0.
func half(x float32) uint16 {
	bits := math.Float32bits(x)
	exponent := int(bits>>23&0xff) - 127 + 15
	if exponent <= 0 {
		return 0
	}
	return uint16(bits>>16&0x8000 | uint32(exponent)<<10 | bits>>13&0x3ff)
}

// rows are memories to insert.
type rows struct {
	tenants, ids []uuid.UUID
	users, seqs  []int64
	texts        []string
	vectors      [][]byte
}

// insert stores the memories as the product does, without a transaction for each.
const insert = `with input as materialized (
	select i.*, b.id as bucket_id from unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::bigint[], $5::text[], $6::bytea[])
		as i (tenant_id, id, user_id, seq, text, embedding)
	join buckets b on b.tenant_id = i.tenant_id and b.user_id = i.user_id and b.is_default
), memory as (
	insert into memories (tenant_id, user_id, id, seq, bucket_id, text, tokens)
	select tenant_id, user_id, id, seq, bucket_id, text, length(text) / 4 from input
), version as (
	insert into memory_versions (tenant_id, user_id, memory_id, version, text) select tenant_id, user_id, id, 1, text from input
)
insert into units (tenant_id, user_id, kind, group_id, memory_id, span_start, span_end, tsv, embedding, generation_id, indexed_at)
select tenant_id, user_id, 1, bucket_id, id, 0, octet_length(text), to_tsvector('english', text), embedding,
	(select id from embedding_generations where active), case when $7 then now() - interval '1 hour' end
from input`

// holder is a user with the number of memories to load.
type holder struct {
	tenant tenant.ID
	user   tenant.UserID
	count  int
}

// load stores memories of the holders. Their units count as indexed, or wait for it.
func (v *volume) load(tb testing.TB, server *installation.Server, holders []holder, indexed bool) {
	tb.Helper()
	v.prepare(tb, server)
	batches := make(chan rows)
	var loaders sync.WaitGroup
	for range 4 {
		loaders.Go(func() {
			for r := range batches {
				if _, err := server.Owner.Exec(tb.Context(), insert, r.tenants, r.ids, r.users, r.seqs, r.texts, r.vectors, indexed); err != nil {
					tb.Errorf("load memories: %v", err)
				}
			}
		})
	}
	v.generate(tb, holders, batches)
	loaders.Wait()
	v.finish(tb, server)
}

// generate sends the memories in batches.
func (v *volume) generate(tb testing.TB, holders []holder, batches chan<- rows) {
	tb.Helper()
	defer close(batches)
	var r rows
	for _, h := range holders {
		id, err := uuid.Parse(string(h.tenant))
		if err != nil {
			tb.Fatal(err)
		}
		for seq := range h.count {
			r.tenants, r.ids, r.users, r.seqs = append(r.tenants, id), append(r.ids, v.id()), append(r.users, int64(h.user)), append(r.seqs, int64(seq+1))
			r.texts, r.vectors = append(r.texts, v.memory()), append(r.vectors, v.vector())
			if len(r.ids) == loadBatch {
				batches <- r
				r = rows{}
			}
		}
	}
	if len(r.ids) > 0 {
		batches <- r
	}
}

// conversationMessages is the number of messages of a conversation.
const conversationMessages = 50

// chats are messages of conversations to insert.
type chats struct {
	tenants, conversations []uuid.UUID
	users                  []int64
	seqs                   []int32
	texts, around          []string // around has the neighbors' texts, too
	vectors                [][]byte
}

// insertChats stores conversations as the product does.
const insertChats = `with input as materialized (
	select * from unnest($1::uuid[], $2::bigint[], $3::uuid[], $4::int[], $5::text[], $6::text[], $7::bytea[])
		as i (tenant_id, user_id, id, seq, text, around, embedding)
), conversation as (
	insert into conversations (tenant_id, user_id, id, external_id, platform, title, status, message_count, token_count, bytes, import_id, created_at, updated_at)
	select tenant_id, user_id, id, id, 'chatgpt', 'A conversation', 'active', count(*), sum(length(text) / 4), sum(octet_length(text)), id, now(), now()
	from input group by tenant_id, user_id, id
), message as (
	insert into messages (tenant_id, user_id, conversation_id, seq, external_id, sender, text, tokens, created_at)
	select tenant_id, user_id, id, seq, seq, case when seq % 2 = 0 then 'human' else 'assistant' end, text, length(text) / 4, now() from input
)
insert into units (tenant_id, user_id, kind, group_id, conversation_id, seq, span_start, span_end, tsv, embedding, generation_id, indexed_at)
select tenant_id, user_id, 2, $8, id, seq, 0, octet_length(text), to_tsvector('english', around), embedding,
	(select id from embedding_generations where active), now() - interval '1 hour'
from input`

// loadChats stores as many messages of each holder as load stores memories, and counts them as the product does. Their units count as indexed.
func (v *volume) loadChats(tb testing.TB, server *installation.Server, holders []holder) {
	tb.Helper()
	var c chats
	flush := func() {
		execute(tb, server, insertChats, c.tenants, c.users, c.conversations, c.seqs, c.texts, c.around, c.vectors, retrieve.GroupOf("chatgpt"))
		c = chats{}
	}
	for _, h := range holders {
		for first := 0; first < h.count; first += conversationMessages {
			v.addConversation(&c, uuid.MustParse(string(h.tenant)), int64(h.user), min(conversationMessages, h.count-first))
			if len(c.seqs) >= loadBatch {
				flush()
			}
		}
	}
	flush()
	execute(tb, server, `update users u set conversations = c.n
		from (select tenant_id, user_id, count(*) as n from conversations group by tenant_id, user_id) c
		where u.tenant_id = c.tenant_id and u.id = c.user_id`)
	execute(tb, server, `update usage u set conversations = c.n, storage = storage + c.bytes
		from (select tenant_id, count(*) as n, sum(bytes) as bytes from conversations group by tenant_id) c where u.tenant_id = c.tenant_id`)
	execute(tb, server, `vacuum analyze conversations, messages, units`)
	checkCounters(tb, server)
}

// addConversation adds a conversation with a number of messages.
func (v *volume) addConversation(c *chats, tenantID uuid.UUID, user int64, count int) {
	conversation := v.id()
	texts := make([]string, count)
	for i := range texts {
		texts[i] = v.text(12 + v.IntN(40))
	}
	for i, text := range texts {
		c.tenants, c.users, c.conversations = append(c.tenants, tenantID), append(c.users, user), append(c.conversations, conversation)
		c.seqs, c.texts, c.vectors = append(c.seqs, int32(i)), append(c.texts, text), append(c.vectors, v.vector())
		c.around = append(c.around, strings.Join(texts[max(i-1, 0):min(i+2, count)], " "))
	}
}

// id returns a random id.
func (v *volume) id() uuid.UUID {
	return uuid.UUID(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, v.Uint64()), v.Uint64()))
}

// prepare creates the default buckets, and postpones the sweeps: they would compare the loaded units with Milvus, which
// has only those that searches need.
func (v *volume) prepare(tb testing.TB, server *installation.Server) {
	tb.Helper()
	execute(tb, server, `insert into buckets (tenant_id, user_id, name, name_key, is_default)
		select u.tenant_id, u.id, $1, $2, true from users u where u.kind <> 'application'
		and not exists (select from buckets b where b.tenant_id = u.tenant_id and b.user_id = u.id)`, memory.DefaultBucket, memory.BucketNameKey(memory.DefaultBucket))
	execute(tb, server, `insert into index_sweeps (tenant_id, began_at, swept_at) select id, 'infinity', now() from tenants
		on conflict (tenant_id) do update set began_at = excluded.began_at`)
}

// finish counts the loaded rows as the product does.
func (v *volume) finish(tb testing.TB, server *installation.Server) {
	tb.Helper()
	for _, statement := range []string{
		`create unlogged table bench_loaded as select tenant_id, user_id, count(*) as n, max(seq) as seq, sum(octet_length(text)) as bytes
			from memories group by tenant_id, user_id`,
		`update users u set memories = l.n, memory_seq = l.seq from bench_loaded l
			where u.tenant_id = l.tenant_id and u.id = l.user_id and u.memories <> l.n`,
		`update buckets b set memories = l.n from bench_loaded l where b.tenant_id = l.tenant_id and b.user_id = l.user_id and b.memories <> l.n`,
		`update usage u set memories = l.n, storage = l.bytes from (
			select tenant_id, sum(n) as n, sum(bytes) as bytes from bench_loaded group by tenant_id) l where u.tenant_id = l.tenant_id`,
		`drop table bench_loaded`,
	} {
		execute(tb, server, statement)
	}
	vacuum(tb, server)
	checkCounters(tb, server)
}

// checkCounters compares the counters with the loaded rows in a short run.
func checkCounters(tb testing.TB, server *installation.Server) {
	tb.Helper()
	if *full {
		return
	}
	if wrong, err := postgrestest.WrongCounters(tb.Context(), server.Owner); err != nil || len(wrong) > 0 {
		tb.Errorf("counters after the load: %v, %v", wrong, err)
	}
}

// vacuum does for written rows what autovacuum does when enough rows have changed: it collects statistics, and marks pages whose rows all
// transactions see, so that the rows of a user are counted in the index alone. mem0's data is flushed, too.
func vacuum(tb testing.TB, server *installation.Server) {
	tb.Helper()
	execute(tb, server, `vacuum analyze users, buckets, usage, memories, memory_versions, units`)
}

func execute(tb testing.TB, server *installation.Server, statement string, args ...any) {
	tb.Helper()
	if _, err := server.Owner.Exec(tb.Context(), statement, args...); err != nil {
		tb.Fatalf("%.100s: %v", statement, err)
	}
}

// describe returns a line about loaded units: their time and space.
func describe(tb testing.TB, server *installation.Server, name string, began time.Time) string {
	tb.Helper()
	took := time.Since(began)
	var units, heap, indexes, all int64
	if err := server.Owner.QueryRow(tb.Context(), `select (select count(*) from units),
		sum(pg_table_size(c.oid)) filter (where c.relname ~ '^units_\d$')::bigint, sum(pg_indexes_size(c.oid)) filter (where c.relname ~ '^units_\d$')::bigint,
		pg_database_size(current_database())
		from pg_class c where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace`).Scan(&units, &heap, &indexes, &all); err != nil {
		tb.Fatal(err)
	}
	return fmt.Sprintf("%s: %d units loaded in %.1f s; database %d MiB, per unit %d bytes, of which the table of units %d and its indexes %d",
		name, units, took.Seconds(), all>>20, all/units, heap/units, indexes/units)
}
