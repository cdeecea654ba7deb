package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/test/installation"
)

// The users of a mix. Their activity follows Zipf's law.
const (
	mixTenants, mixTenantUsers = 50, 20
	mixLeast, mixMost          = 200, 5000 // memories and messages of a user, distributed evenly on a logarithmic scale
	mixExponent                = 1.1
)

// The shares of the operations of a mix. The others are deletions.
const (
	mixMemorySearches = 0.35
	mixChatSearches   = 0.35
	mixCreations      = 0.15
	mixLists          = 0.10
)

// mixUser is a user of a mix.
type mixUser struct {
	api
	name     string // of mem0
	memories int

	mu      sync.Mutex
	ids     []string // of memories to delete
	deleted int
}

// next returns the id of a memory to delete, and its number.
func (u *mixUser) next(tb testing.TB) (id string, n int) {
	tb.Helper()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.deleted == len(u.ids) {
		tb.Fatalf("user %s has no memories to delete left: use a smaller -n", u.name)
	}
	u.deleted++
	return u.ids[u.deleted-1], u.deleted - 1
}

// mix is a run.
type mix struct {
	scale
	server *installation.Server
	peers  *peers // nil in a short run
	users  []*mixUser
}

// TestMix measures a mix of the operations of many users, or checks the answers with few users. The server restarts before
// each round.
func TestMix(t *testing.T) {
	m := &mix{scale: scale{TB: t, report: report{Machine: thisMachine()}, http: newHTTP(), n: 40, rounds: 1}}
	if *full {
		m.n, m.rounds = *repeat, allRounds
	} else {
		t.Parallel()
	}
	m.volume = newVolume(t)
	m.server = m.serve(installation.ServerOptions{})
	if *full {
		m.peers = startPeers(t)
	}
	m.load()
	for round := range m.rounds {
		for _, clients := range []int{1, 8} {
			m.server.Restart(t)
			m.measure(clients, uint64(round))
		}
	}
	m.resident("mix", []point{{size: len(m.users), server: m.server}})
	for _, name := range []string{"search memories", "create", "list 10", "delete"} {
		m.report.compare(name+", mix ÷ mem0", 0, m.row(name, "Mnemo", 1), m.row(name, "mem0", 1))
	}
	t.Logf("\n%s", &m.report)
	save(t, &m.report)
}

// row returns the series of an operation with a number of clients.
func (m *mix) row(operation, subject string, clients int) *series {
	return m.report.row(operation, subject+", clients", clients)
}

// load creates the users with their memories and messages, and indexes those of tenants that need an index.
func (m *mix) load() {
	m.Helper()
	tenants, users, least, most := mixTenants, mixTenantUsers, mixLeast, mixMost
	if !*full {
		tenants, users, least, most = 2, 2, 40, 80
	}
	began, r := time.Now(), rand.New(rand.NewPCG(5, 1))
	var holders []holder
	var large []installation.ServedTenant
	for range tenants {
		t := m.server.AddTenant(m.TB, installation.TenantOptions{Users: names(users), Partition: true})
		needsIndex := false
		for _, name := range names(users) {
			count := int(float64(least) * math.Pow(float64(most)/float64(least), r.Float64()))
			holders = append(holders, holder{t.Tenant, t.Users[name], count / 2})
			needsIndex = needsIndex || count/2 > placement.ExactUnits
			m.users = append(m.users, &mixUser{
				api:  api{url: m.server.URL, token: t.Tokens[name], http: m.http},
				name: fmt.Sprintf("%s-%d", t.Tenant, t.Users[name]), memories: count / 2,
			})
		}
		if needsIndex {
			large = append(large, t)
		}
	}
	m.volume.load(m.TB, m.server, holders, true)
	m.volume.loadChats(m.TB, m.server, holders)
	for i, h := range holders {
		m.loaded(m.users[i], h)
	}
	for _, t := range large {
		m.index(m.server, t, 0)
	}
	m.fact(describe(m.TB, m.server, fmt.Sprintf("%d users, and an index of %d tenants", len(m.users), len(large)), began))
	rand.New(rand.NewPCG(6, 1)).Shuffle(len(m.users), func(i, k int) { m.users[i], m.users[k] = m.users[k], m.users[i] })
}

// loaded reads the ids of memories of a user, and copies its memories to mem0.
func (m *mix) loaded(u *mixUser, h holder) {
	m.Helper()
	if err := m.server.Owner.QueryRow(m.Context(), `select array_agg(id::text) from (
		select id from memories where tenant_id = $1 and user_id = $2 order by seq limit 200) x`, h.tenant, h.user).Scan(&u.ids); err != nil {
		m.Fatal(err)
	}
	if m.peers == nil {
		return
	}
	var texts []string
	var vectors [][]byte // base64 in JSON
	if err := m.server.Owner.QueryRow(m.Context(), `select array_agg(m.text order by m.seq), array_agg(u.embedding order by m.seq)
		from memories m join units u on u.tenant_id = m.tenant_id and u.user_id = m.user_id and u.memory_id = m.id
		where m.tenant_id = $1 and m.user_id = $2`, h.tenant, h.user).Scan(&texts, &vectors); err != nil {
		m.Fatal(err)
	}
	m.peers.do(m.TB, "mem0_load", map[string]any{"user": u.name, "texts": texts, "vectors": vectors}, nil)
}

// measure does the operations of a round, and adds what the processes used.
func (m *mix) measure(clients int, seed uint64) {
	m.Helper()
	operations := m.plan(clients, seed)
	m.awaitIdle()
	before := m.processes()
	took, elapsed := concurrently(clients, len(operations), func(i int) { operations[i].do() })
	used := m.processes()
	if clients == 1 && m.peers != nil { // mem0 answers one request at a time
		for _, o := range operations {
			if o.peer != nil {
				m.row(o.name, "mem0", clients).add(o.peer())
			}
		}
	}
	m.row("all", "Mnemo", clients).round(took, elapsed)
	for i, o := range operations {
		m.row(o.name, "Mnemo", clients).add(took[i])
	}
	line := fmt.Sprintf("CPU per request, %d clients:", clients)
	for _, name := range []string{"mnemo", "postgres", "milvus"} {
		line += fmt.Sprintf(" %s %.2f ms", name, toMS(used[name]-before[name])/float64(len(operations)))
	}
	m.fact(line)
	m.settle(m.server)
}

// operation is a request of a mix; peer does it with mem0, if it can.
type operation struct {
	name string
	do   func()
	peer func() time.Duration
}

// plan chooses the operations of a round.
func (m *mix) plan(clients int, seed uint64) []operation {
	m.Helper()
	r := rand.New(rand.NewPCG(seed, uint64(clients)))
	active := rand.NewZipf(r, mixExponent, 1, uint64(len(m.users)-1))
	out := make([]operation, m.n)
	for i := range out {
		u := m.users[active.Uint64()]
		switch share := r.Float64(); {
		case share < mixMemorySearches:
			out[i] = m.searchMemories(u)
		case share < mixMemorySearches+mixChatSearches:
			query := m.volume.text(8)
			out[i] = operation{name: "search chats", do: func() {
				u.do(m.TB, http.MethodPost, "/api/search", map[string]any{"query": query, "limit": results}, nil)
			}}
		case share < mixMemorySearches+mixChatSearches+mixCreations:
			out[i] = m.create(u)
		case share < mixMemorySearches+mixChatSearches+mixCreations+mixLists:
			out[i] = m.list(u)
		default:
			out[i] = m.delete(u)
		}
	}
	return out
}

func (m *mix) searchMemories(u *mixUser) operation {
	query := m.volume.text(8)
	return operation{"search memories", func() { u.texts(m.TB, query, results) }, func() time.Duration {
		return m.peers.do(m.TB, "mem0_search", map[string]any{"user": u.name, "text": query, "limit": results}, nil)
	}}
}

func (m *mix) create(u *mixUser) operation {
	text := m.volume.memory()
	return operation{"create", func() { u.create(m.TB, text) }, func() time.Duration {
		return m.peers.do(m.TB, "mem0_add", map[string]any{"user": u.name, "text": text}, nil)
	}}
}

func (m *mix) list(u *mixUser) operation {
	return operation{"list 10", func() {
		if found, _ := u.texts(m.TB, "", 10); len(found) != 10 {
			m.Errorf("%d memories are listed, want 10", len(found))
		}
	}, func() time.Duration {
		return m.peers.do(m.TB, "mem0_list", map[string]any{"user": u.name, "limit": 10}, nil)
	}}
}

func (m *mix) delete(u *mixUser) operation {
	m.Helper()
	id, n := u.next(m.TB)
	return operation{"delete", func() { u.do(m.TB, http.MethodDelete, "/api/memories/"+id, nil, nil) }, func() time.Duration {
		return m.peers.do(m.TB, "mem0_delete", map[string]any{"id": fmt.Sprintf("%s-%d", u.name, n)}, nil)
	}}
}

// processes returns the processor time of all processes by name. That of ended processes belongs to their parents.
func (m *mix) processes() map[string]time.Duration {
	m.Helper()
	used, err := processorTimes("mnemo", "postgres", "milvus")
	if err != nil {
		m.Fatal(err)
	}
	if used["mnemo"] == 0 || used["postgres"] == 0 {
		m.Fatalf("the processor time of mnemo and postgres is %v", used)
	}
	return used
}
