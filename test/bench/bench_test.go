package bench

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/test/installation"
)

var (
	full     = flag.Bool("full", false, "measure with all sizes and compare with other software")
	sizes    = flag.String("sizes", "200,2000,5000,20000", "memories of the users to measure with")
	repeat   = flag.Int("n", 200, "repetitions of each operation")
	jsonFile = flag.String("json", "", "file for the report as JSON")
)

// bench is a run.
type bench struct {
	testing.TB
	report report
	server *installation.Server
	floor  *floor
	peers  *peers // nil in a short run
	http   *http.Client
	writer writer
	n      int
}

// TestBench measures every operation, or checks the answers of each with few repetitions.
func TestBench(t *testing.T) {
	list, n := "40", 5
	if *full {
		list, n = *sizes, *repeat
	} else {
		t.Parallel()
	}
	var users []string
	var counts []int
	for s := range strings.SplitSeq(list, ",") {
		count, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		users, counts = append(users, "u"+s), append(counts, count)
	}
	b := &bench{TB: t, report: report{Machine: thisMachine()}, http: newHTTP(), writer: newWriter(1), n: n}
	b.residentWithoutModel(t)
	b.server = installation.ServeLocal(t, append(users, "chats", "bulk")...)
	dropChecks(t, b.server)
	b.resident("API server, idle, with the local model", 120)
	b.floor = newFloor(t, b.server)
	if *full {
		b.peers = startPeers(t)
	}
	b.embedding()
	for i, user := range users {
		b.load(user, counts[i])
		b.search(user, counts[i])
	}
	last := len(users) - 1
	b.write(users[last], counts[last])
	b.read(users[last], counts[last])
	b.bulkDelete("bulk")
	b.ingest()
	b.resident("API server, after the run", 250)
	b.ratios(counts)
	t.Logf("\n%s", &b.report)
	save(t, &b.report)
}

// save writes a report to the file of -json, if there is one.
func save(tb testing.TB, r *report) {
	tb.Helper()
	if *jsonFile == "" {
		return
	}
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(*jsonFile, append(raw, '\n'), 0o644); err != nil {
		tb.Fatal(err)
	}
}

// newHTTP returns a client that keeps the connections of all clients of a curve.
func newHTTP() *http.Client {
	return &http.Client{Timeout: 5 * time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 128}}
}

func (b *bench) as(user string) api {
	return api{url: b.server.URL, token: b.server.Tokens[user], http: b.http}
}

func (b *bench) usage() usage {
	b.Helper()
	u, err := measure(b.server.Metrics)
	if err != nil {
		b.Fatal(err)
	}
	return u
}

// resident measures the resident memory of the server. atMost is the target in MiB.
func (b *bench) resident(name string, atMost int64) {
	b.Helper()
	b.report.Memory = append(b.report.Memory, footprint{name, b.usage().resident, atMost})
}

// residentWithoutModel measures an idle server that uses an embedding endpoint, and stops it.
func (b *bench) residentWithoutModel(t *testing.T) {
	t.Helper()
	t.Run("WithoutModel", func(t *testing.T) {
		endpoint := httptest.NewServer(http.NotFoundHandler()) // nothing is embedded
		t.Cleanup(endpoint.Close)
		idle := bench{TB: t, server: installation.Serve(t, installation.ServerOptions{Embeddings: endpoint.URL})}
		idle.resident("API server, idle, without a local model", 60)
		b.report.Memory = append(b.report.Memory, idle.report.Memory...)
	})
}

// alternate does n rounds of operations, which add to their series, and adds the server's usage to one of them.
func (b *bench) alternate(n int, own *series, round func(i int)) {
	b.Helper()
	before := b.usage()
	for i := range n {
		round(i)
	}
	own.cost = own.cost.plus(b.usage().since(before))
}

// inTurn runs the operations of a round, in reverse order in every second round: an operation needs more time after a pause, and while the
// stores are still busy with the previous one. The first and the last one are compared: each follows itself in every second round.
func (b *bench) inTurn(round int, operations ...func()) {
	b.Helper()
	if round%2 == 1 {
		slices.Reverse(operations)
	}
	for _, do := range operations {
		do()
	}
}

// turn is the number of queries that are embedded in a row. The first one of a process that has waited takes longer.
const turn = 10

// embedding compares the embedder with onnxruntime in Python, in turns.
func (b *bench) embedding() {
	b.Helper()
	own, peer := b.report.row("embed query", "embedder", 0), b.report.row("embed query", "onnxruntime", 0)
	for done := 0; done < b.n; done += turn {
		texts := make([]string, min(turn, b.n-done))
		for i := range texts {
			texts[i] = b.writer.text(8)
			_, took := b.floor.query(b.TB, texts[i])
			own.add(took)
		}
		if b.peers == nil {
			continue
		}
		for _, text := range texts {
			peer.add(b.peers.do(b.TB, "embed", map[string]any{"text": text}, nil))
		}
	}
}

// loaders is the number of clients that fill an account.
const loaders = 8

// load fills an account of Mnemo and of mem0 with the same memories, and waits until they are indexed.
func (b *bench) load(user string, count int) {
	b.Helper()
	texts := make([]string, count)
	for i := range texts {
		texts[i] = b.writer.memory()
	}
	var clients sync.WaitGroup
	for part := range slices.Chunk(texts, (count+loaders-1)/loaders) {
		clients.Go(func() {
			for _, text := range part {
				b.as(user).create(b.TB, text)
			}
		})
	}
	clients.Wait()
	b.settle(user)
	vacuum(b.TB, b.server)
	if b.peers != nil {
		b.peers.do(b.TB, "mem0_load", map[string]any{"user": user, "texts": texts}, nil)
	}
}

// settle waits until all units of a user are indexed.
func (b *bench) settle(user string) {
	b.Helper()
	installation.Eventually(b, time.Hour, func() string {
		var waiting bool // counting them would add to the load of the database
		if err := b.server.Owner.QueryRow(b.Context(), "select exists (select from units where tenant_id = $1 and user_id = $2 and active and indexed_at is null)",
			b.server.Tenant, b.server.Users[user]).Scan(&waiting); err != nil {
			return err.Error()
		}
		if waiting {
			return "a unit is not indexed"
		}
		return ""
	})
}

// results is the number of results of a search.
const results = 10

func (b *bench) search(user string, size int) {
	b.Helper()
	row := func(subject string) *series { return b.report.row("search", subject, size) }
	own := row("Mnemo")
	b.alternate(b.n, own, func(int) {
		query := b.writer.text(8)
		found, took := b.as(user).texts(b.TB, query, results)
		own.add(took)
		if len(found) == 0 && !*full {
			b.Errorf("no memory was found for %q", query)
		}
		vector, took := b.floor.query(b.TB, query)
		row("embedder").add(took)
		index, fetch := b.floor.search(b.TB, user, vector)
		row("Milvus").add(index)
		row("PostgreSQL").add(fetch)
		row("empty handler").add(api{url: b.floor.empty, http: b.http}.do(b.TB, http.MethodGet, "", nil, nil))
		if b.peers != nil {
			var texts []string
			row("mem0").add(b.peers.do(b.TB, "mem0_search", map[string]any{"user": user, "text": query, "limit": results}, &texts))
		}
	})
}

// write creates and deletes memories, each apart so that the server's usage is that of one operation, and counts
// searches that do not see a change.
func (b *bench) write(user string, size int) {
	b.Helper()
	row := func(operation, subject string) *series { return b.report.row(operation, subject, size) }
	texts, ids, peerIDs := make([]string, b.n), make([]string, b.n), make([]string, b.n)
	b.alternate(b.n, row("create", "Mnemo"), func(i int) {
		texts[i] = b.writer.memory()
		b.inTurn(i, func() {
			var took time.Duration
			ids[i], took = b.as(user).create(b.TB, texts[i])
			row("create", "Mnemo").add(took)
			b.idle() // its job would slow the others down
		}, func() {
			if b.peers != nil {
				row("create", "mem0").add(b.peers.do(b.TB, "mem0_add", map[string]any{"user": user, "text": texts[i]}, &peerIDs[i]))
				row("create", "LangGraph (no vectors)").add(b.peers.do(b.TB, "langgraph_put", map[string]any{"user": user, "id": fmt.Sprint(i), "text": texts[i]}, nil))
			}
		}, func() {
			vector, took := b.floor.passage(b.TB, texts[i])
			row("create", "embedder").add(took)
			row("create", "PostgreSQL").add(b.floor.insert(b.TB, user, texts[i], vector))
		})
	})
	b.alternate(b.n, row("delete", "Mnemo"), func(i int) {
		b.inTurn(i, func() {
			row("delete", "Mnemo").add(b.as(user).do(b.TB, http.MethodDelete, "/api/memories/"+ids[i], nil, nil))
			b.idle()
		}, func() {
			if b.peers != nil {
				row("delete", "mem0").add(b.peers.do(b.TB, "mem0_delete", map[string]any{"id": peerIDs[i]}, nil))
				row("delete", "LangGraph (no vectors)").add(b.peers.do(b.TB, "langgraph_delete", map[string]any{"user": user, "id": fmt.Sprint(i)}, nil))
			}
		})
	})
	stale := b.countStale(user, texts)
	b.report.Facts = append(b.report.Facts, fmt.Sprintf("stale searches after %d creations and deletions: Mnemo %d", 2*b.n, stale))
	if stale > 0 {
		b.Errorf("%d of %d searches were stale, want 0", stale, 2*b.n)
	}
	if b.peers != nil {
		b.report.Facts = append(b.report.Facts, fmt.Sprintf("stale searches after %d creations and deletions: mem0 %d", 2*b.n, b.countStaleOfMem0(user, texts)))
	}
}

// countStale creates and deletes memories, and counts the searches after each that do not see it.
func (b *bench) countStale(user string, texts []string) (stale int) {
	b.Helper()
	for _, text := range texts {
		id, _ := b.as(user).create(b.TB, text)
		stale += b.missing(user, text)
		b.as(user).do(b.TB, http.MethodDelete, "/api/memories/"+id, nil, nil)
		stale += 1 - b.missing(user, text)
	}
	return stale
}

// missing returns 1 if a search for the text does not find it.
func (b *bench) missing(user, text string) int {
	b.Helper()
	found, _ := b.as(user).texts(b.TB, text, results)
	if slices.Contains(found, text) {
		return 0
	}
	return 1
}

// countStaleOfMem0 is countStale for mem0.
func (b *bench) countStaleOfMem0(user string, texts []string) (stale int) {
	b.Helper()
	for _, text := range texts {
		args := map[string]any{"user": user, "text": text, "limit": results}
		find := func() int {
			var found []string
			b.peers.do(b.TB, "mem0_search", args, &found)
			if slices.Contains(found, text) {
				return 1
			}
			return 0
		}
		var id string
		b.peers.do(b.TB, "mem0_add", args, &id)
		stale += 1 - find()
		b.peers.do(b.TB, "mem0_delete", map[string]any{"id": id}, nil)
		stale += find()
	}
	return stale
}

// page is the number of memories of a listing.
const page = 1000

func (b *bench) read(user string, size int) {
	b.Helper()
	row := func(operation, subject string) *series { return b.report.row(operation, subject, size) }
	if b.peers != nil {
		for i := range page {
			b.peers.do(b.TB, "langgraph_put", map[string]any{"user": user, "id": fmt.Sprint(i), "text": b.writer.memory()}, nil)
		}
	}
	b.alternate(b.n, row("list 1000", "Mnemo"), func(i int) {
		b.inTurn(i, func() {
			found, took := b.as(user).texts(b.TB, "", page)
			row("list 1000", "Mnemo").add(took)
			if want := min(page, size); len(found) != want {
				b.Fatalf("%d memories are listed, want %d", len(found), want)
			}
		}, func() {
			if b.peers != nil {
				args := map[string]any{"user": user, "limit": page}
				row("list 1000", "mem0").add(b.peers.do(b.TB, "mem0_list", args, nil))
				row("list 1000", "LangGraph (no vectors)").add(b.peers.do(b.TB, "langgraph_list", args, nil))
			}
		}, func() {
			row("list 1000", "PostgreSQL").add(b.floor.list(b.TB, user, page))
		})
	})
	b.alternate(b.n, row("list 10", "Mnemo"), func(i int) {
		b.inTurn(i, func() {
			_, took := b.as(user).texts(b.TB, "", 10)
			row("list 10", "Mnemo").add(took)
		}, func() {
			row("list 10", "PostgreSQL").add(b.floor.list(b.TB, user, 10))
		})
	})
	b.alternate(b.n, row("count", "Mnemo"), func(i int) {
		b.inTurn(i, func() {
			row("count", "Mnemo").add(b.as(user).do(b.TB, http.MethodGet, "/api/chat-history/count", nil, nil))
		}, func() {
			row("count", "empty handler").add(api{url: b.floor.empty, http: b.http}.do(b.TB, http.MethodGet, "", nil, nil))
		}, func() {
			row("count", "PostgreSQL").add(b.floor.pick(b.TB, user))
		})
	})
}

// bulkMemories is the number of memories that are deleted in batches.
func bulkMemories() int {
	if *full {
		return 10 * page
	}
	return 40
}

// bulkDelete deletes the memories of a user in batches, and as many rows and vectors with raw calls. Each deletion
// begins when the jobs of the one before have ended.
func (b *bench) bulkDelete(user string) {
	b.Helper()
	row := func(subject string) *series { return b.report.row("bulk delete 1000", subject, bulkMemories()) }
	b.fillIndexed(user, bulkMemories())
	raw := b.floor.fill(b.TB, user, bulkMemories())
	batches := slices.Collect(slices.Chunk(b.as(user).ids(b.TB), page))
	b.alternate(len(batches), row("Mnemo"), func(i int) {
		ids := batches[i]
		var out struct{ DeletedCount int }
		row("Mnemo").add(b.as(user).do(b.TB, http.MethodPost, "/api/memories/bulk-delete", map[string]any{"memoryIds": ids}, &out))
		if out.DeletedCount != len(ids) {
			b.Fatalf("%d memories were deleted, want %d", out.DeletedCount, len(ids))
		}
		b.idle()
		rows, vectors := raw.deleteBatch(b.TB, i, ids)
		row("PostgreSQL").add(rows)
		row("Milvus").add(vectors)
	})
}

// idle waits until all units are synchronized with the index.
func (b *bench) idle() {
	b.Helper()
	installation.Eventually(b, time.Minute, func() string {
		var jobs int
		if err := b.server.Owner.QueryRow(b.Context(), "select count(*) from river_job where kind = $1 and finalized_at is null",
			indexing.SyncArgs{}.Kind()).Scan(&jobs); err != nil {
			return err.Error()
		}
		if jobs > 0 {
			return fmt.Sprintf("%d jobs have not ended", jobs)
		}
		return ""
	})
}

func (b *bench) ratios(counts []int) {
	r := &b.report
	r.compare("embed query ÷ onnxruntime in Python", 1.0, r.row("embed query", "embedder", 0), r.row("embed query", "onnxruntime", 0))
	for _, n := range counts {
		search := func(subject string) *series { return r.row("search", subject, n) }
		r.compare(fmt.Sprintf("search, %d ÷ mem0", n), 0.75, search("Mnemo"), search("mem0"))
		floor := []*series{search("embedder"), search("Milvus"), search("PostgreSQL")}
		r.compare(fmt.Sprintf("search, %d ÷ (embed + Milvus + rows)", n), 1.4, search("Mnemo"), floor...)
		r.compareAt(0.95, ratio{Name: fmt.Sprintf("search p95, %d ÷ (embed + Milvus + rows)", n), AtMost: 2}, search("Mnemo"), floor...)
	}
	last := counts[len(counts)-1]
	row := func(operation, subject string) *series { return r.row(operation, subject, last) }
	r.compare("create ÷ (embed + inserts)", 1.4, row("create", "Mnemo"), row("create", "embedder"), row("create", "PostgreSQL"))
	r.compare("create ÷ mem0", 1.0, row("create", "Mnemo"), row("create", "mem0"))
	r.compare("delete ÷ mem0", 1.0, row("delete", "Mnemo"), row("delete", "mem0"))
	r.compare("list 1000 ÷ select", 2.0, row("list 1000", "Mnemo"), row("list 1000", "PostgreSQL"))
	r.compare("list 1000 ÷ LangGraph", 1.0, row("list 1000", "Mnemo"), row("list 1000", "LangGraph (no vectors)"))
	bulk := func(subject string) *series { return r.row("bulk delete 1000", subject, bulkMemories()) }
	r.compare("bulk delete 1000 ÷ (deletes + Milvus)", 2.0, bulk("Mnemo"), bulk("PostgreSQL"), bulk("Milvus"))
	r.compare("count ÷ primary key + empty handler", 1.5, row("count", "Mnemo"), row("count", "PostgreSQL"), row("count", "empty handler"))
	r.compareRates(ratio{Name: "ingest, texts/s ÷ embedder", AtLeast: 0.9}, r.row("ingest", "Mnemo", chatMessages), r.row("ingest", "embedder", chatMessages))
}
