package apiserver

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/embed"
	"github.com/mnemo-dev/mnemo/internal/extract"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/jobs"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/milvus"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/reembed"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/testkit"
	"github.com/mnemo-dev/mnemo/internal/tokens"
	"github.com/mnemo-dev/mnemo/internal/webhook"
)

// realIndex is Milvus, or indexing.NoIndex.
type realIndex interface {
	retrieve.Index
	indexing.Store
	placement.Partitions
	Close() error
}

// realStores are PostgreSQL, the index, the model and the workers.
type realStores struct {
	ownerURL string // of the database
	db       *postgres.DB
	index    realIndex
	embedder *embed.Local
	// run runs a job and returns its last state.
	run func(context.Context, interface{ Kind() string }) (state string, err error)
}

func openReal(t *testing.T) realStores {
	t.Helper()
	return openRealAt(t, testkit.Milvus(t).Addr)
}

// openRealAt opens the stores with Milvus at an address.
func openRealAt(t *testing.T, address string) realStores {
	t.Helper()
	embedder, addr := openRealModel(t), testkit.Milvus(t)
	index, err := milvus.Open(t.Context(), milvus.Config{Address: address, Username: addr.User, Password: addr.Password,
		Prefix: "api" + strings.ToLower(rand.Text()) + "_", Dimensions: embedder.Dimensions()})
	if err != nil {
		t.Fatal(err)
	}
	d := postgrestest.Create(t)
	return realStores{ownerURL: d.OwnerURL, db: postgrestest.Open(t, d), index: index, embedder: embedder}.work(t)
}

// openUnindexed opens the stores of an installation without Milvus.
func openUnindexed(t *testing.T) realStores {
	t.Helper()
	return openUnindexedIn(t, postgrestest.Create(t))
}

func openUnindexedIn(t *testing.T, d postgrestest.Database) realStores {
	t.Helper()
	return realStores{ownerURL: d.OwnerURL, db: postgrestest.OpenUnindexed(t, d), index: indexing.NoIndex{Log: slog.New(slog.DiscardHandler)},
		embedder: openRealModel(t)}.work(t)
}

func openRealModel(t *testing.T) *embed.Local {
	t.Helper()
	embedder, err := embed.OpenLocal(embed.LocalConfig{Dir: testkit.ModelDir(t), Library: testkit.ONNXRuntime(t)})
	if err != nil {
		t.Fatal(err)
	}
	return embedder
}

// engine returns the engine of a server. One without Milvus has no index.
func (s realStores) engine() *retrieve.Engine {
	config := retrieve.Config{Searcher: s.db, Embedders: retrieve.Embedders{1: s.embedder}}
	if m, ok := s.index.(*milvus.Index); ok {
		config.Index = m
	}
	return retrieve.New(config)
}

// work starts the workers. The stores are closed when the test ends.
func (s realStores) work(t *testing.T) realStores {
	t.Helper()
	index, embedder := s.index, s.embedder
	imports := s.db.Imports()
	importing := importer.New(importer.Config{Leases: imports, Files: imports, CountTokens: tokens.Count,
		Archive: importer.Restore(importer.RestoreConfig{Files: imports, Restorer: imports, CountTokens: tokens.Count})})
	log, embedders := slog.New(slog.DiscardHandler), retrieve.Embedders{1: embedder}
	indexer := indexing.NewIndexer(s.db, index, embedders, log)
	config, err := jobs.Config(indexer, s.db, importing, log)
	if err != nil {
		t.Fatal(err)
	}
	migrator := reembed.New(reembed.Config{Store: s.db, Indexer: indexer, Partitions: index, Embedders: embedders, Log: log})
	if err := jobs.MigrateEmbeddings(config, migrator); err != nil {
		t.Fatal(err)
	}
	if err := jobs.DeliverWebhooks(config, &webhook.Deliverer{Store: s.db, Sender: webhook.NewSender(nil, time.Now), Log: log}, log); err != nil {
		t.Fatal(err)
	}
	memories := memory.NewService(memory.Config{Store: s.db.Memories(), Buckets: s.db, Index: index, Embedders: embedders, CountTokens: tokens.Count,
		Searcher: s.engine()})
	if err := jobs.ExtractFacts(config, &extract.Runner{Store: s.db, Memories: memories, Log: log}, log); err != nil {
		t.Fatal(err)
	}
	workers, err := s.db.Jobs(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := workers.Start(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	s.run = func(ctx context.Context, args interface{ Kind() string }) (string, error) {
		inserted, err := workers.Insert(ctx, args, nil)
		for err == nil && inserted.Job.FinalizedAt == nil && inserted.Job.Errors == nil {
			if inserted.Job, err = workers.JobGet(ctx, inserted.Job.ID); err == nil && inserted.Job.State == "scheduled" {
				break // snoozed
			}
		}
		if err != nil {
			return "", err
		}
		return string(inserted.Job.State), nil
	}
	t.Cleanup(func() {
		if err := workers.StopAndCancel(context.Background()); err != nil {
			t.Error(err)
		}
		_ = index.Close()
		_ = embedder.Close()
	})
	return s
}

// newRealServer starts a server on real stores.
func newRealServer(t *testing.T) (*testServer, realStores) {
	t.Helper()
	return newRealServerOn(t, openReal(t))
}

func newRealServerOn(t *testing.T, s realStores, change ...func(*Config)) (*testServer, realStores) {
	t.Helper()
	engine := s.engine()
	h := &testServer{log: &journal{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the server's log:\n%.4000s", h.log)
		}
	})
	h.alice, h.bob = s.tenant(t, "one", "alice", false), s.tenant(t, "one", "bob", false)
	h.carol, h.suspended = s.tenant(t, "two", "carol", false), s.tenant(t, "three", "dave", true)
	config := Config{
		Memories: memory.NewService(memory.Config{Store: s.db.Memories(), Buckets: s.db, Searcher: engine,
			Index: s.index, Embedders: retrieve.Embedders{1: s.embedder}, CountTokens: tokens.Count}),
		Chats: chat.NewService(chat.Config{Store: s.db.Conversations(), Passages: s.db, Searcher: engine,
			Index: s.index, Embedders: retrieve.Embedders{1: s.embedder}, CountTokens: tokens.CountUpTo}),
		Imports:  &importer.Service{Imports: s.db.Imports(), Uploads: s.db.Imports()},
		Accounts: account.NewService(account.Config{Store: s.db.Accounts()}),
		Audit:    s.db,
		Tokens:   s.db,
		Rates:    s.db,
		Users:    s.db,
	}
	for _, f := range change {
		f(&config)
	}
	h.start(t, config)
	return h, s
}

// tenant creates a tenant of two users if necessary and returns the token of a user.
func (s realStores) tenant(t *testing.T, name, user string, suspended bool) string {
	t.Helper()
	id := s.apply(t, name, suspended)
	token, err := tenant.NewToken(0, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.db.Install(t.Context(), id, user, tenant.Credential{Generation: 1, TokenHash: tenant.HashSecret(token), Issuer: tenant.IssuerOperator}); err != nil {
		t.Fatal(err)
	}
	return token
}

// apply creates a tenant if necessary.
func (s realStores) apply(t *testing.T, name string, suspended bool) tenant.ID {
	t.Helper()
	spec := s.spec(name)
	spec.Suspended = suspended
	id := spec.ID
	if _, err := s.db.Apply(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	location, err := s.db.EnsurePlacement(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := placement.EnsurePartition(t.Context(), s.db, placement.WaitLoaded(s.index), placement.Placement{Location: location}); err != nil {
		t.Fatal(err)
	}
	return id
}

// application creates a tenant if necessary, gives it an application with the scopes read and
// write, and returns a key of it.
func (s realStores) application(t *testing.T, name string) string {
	t.Helper()
	id := s.apply(t, name, false)
	key, err := tenant.NewTokenOf(tenant.KeyToken, 0, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	err = s.db.Install(t.Context(), id, tenant.KeyHolder("web"), tenant.Credential{
		Generation: time.Now().UnixNano(), TokenHash: tenant.HashSecret(key), Issuer: tenant.IssuerOperator,
	})
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// spec returns the spec that tenant applies.
func (realStores) spec(name string) tenant.Spec {
	quota := tenant.DefaultQuota()
	quota.Memories, quota.Conversations, quota.Storage, quota.Users, quota.RequestsPerMinute = 1000, 10, 10<<20, 10, 1000000
	return tenant.Spec{
		ID: tenant.ID(fmt.Sprintf("0196b2f4-0000-7000-8000-%012x", name)), Cluster: "c", Namespace: "test", NamespaceUID: "n", Name: name,
		DeletionPolicy: tenant.Delete, Isolation: tenant.Partition,
		Quota:        quota,
		Users:        []tenant.UserSpec{{Name: "alice"}, {Name: "bob"}, {Name: "carol"}, {Name: "dave"}},
		Applications: []tenant.ApplicationSpec{{Name: "web", Scopes: []string{"read", "write"}, RequestsPerMinute: tenant.NoLimit}},
	}
}

// TestReal tests the server with real stores. Its subtests share a server, which is
// expensive to start; each uses a separate user or cleans up.
func TestReal(t *testing.T) {
	t.Parallel()
	h, s := newRealServer(t)
	h.fulfilsContract(t, s)
}

// TestRealWithoutIndex is TestReal on PostgreSQL alone.
func TestRealWithoutIndex(t *testing.T) {
	t.Parallel()
	h, s := newRealServerOn(t, openUnindexed(t))
	h.fulfilsContract(t, s)
}

func (h *testServer) fulfilsContract(t *testing.T, s realStores) {
	t.Helper()
	t.Run("MCP", func(t *testing.T) {
		t.Parallel()
		token := s.tenant(t, "mcp", "alice", false)
		h.usesEveryTool(t, h.assistant(t, token, protocols[0]), token)
		h.storesOnce(t, s)
		h.isolatesAssistants(t, s.tenant(t, "mcp", "bob", false), s.tenant(t, "mcp", "carol", false), s.tenant(t, "mcp2", "alice", false))
	})
	t.Run("Isolation", func(t *testing.T) {
		t.Parallel()
		h.isolates(t)
	})
	t.Run("Refusals", func(t *testing.T) {
		t.Parallel()
		h.rejectsBadFields(t)
	})
	t.Run("ReadYourWrite", func(t *testing.T) {
		t.Parallel()
		h.findsWhatWasJustStored(t, s)
	})
	t.Run("Updates", func(t *testing.T) {
		t.Parallel()
		h.ranksUpdatesFirst(t, s)
	})
	t.Run("Quotations", func(t *testing.T) {
		t.Parallel()
		h.findsOriginals(t, s)
	})
	t.Run("Relevance", func(t *testing.T) {
		t.Parallel()
		h.findsOnlyRelevant(t, s)
	})
	t.Run("ImportOnce", func(t *testing.T) {
		t.Parallel()
		h.importsOnce(t, s)
		h.importsSeveral(t, s)
	})
	t.Run("ImportQuota", func(t *testing.T) {
		t.Parallel()
		h.importsWithinQuota(t, s)
	})
	t.Run("ImportReplicas", func(t *testing.T) {
		t.Parallel()
		h.streamsImportsAcrossReplicas(t, s)
	})
	t.Run("ImportBadFiles", func(t *testing.T) {
		t.Parallel()
		h.rejectsBadFiles(t, s)
	})
	t.Run("DefaultBucket", func(t *testing.T) {
		t.Parallel()
		h.keepsDefaultBucket(t, s)
	})
	t.Run("Rate", func(t *testing.T) {
		t.Parallel()
		h.limitsTogether(t, s)
	})
	t.Run("Idempotency", func(t *testing.T) {
		t.Parallel()
		h.doesOnce(t, s)
	})
	t.Run("Conversations", func(t *testing.T) {
		t.Parallel()
		h.ingestsConversations(t, s)
	})
	t.Run("Marks", func(t *testing.T) {
		t.Parallel()
		h.excludesConversations(t, s)
	})
	t.Run("Account", func(t *testing.T) {
		t.Parallel()
		h.exportsAndDeletesAccounts(t, s)
	})
	t.Run("Applications", func(t *testing.T) {
		t.Parallel()
		h.actsForUsers(t, s)
	})
	t.Run("Recall", func(t *testing.T) {
		t.Parallel()
		h.recalls(t, s)
	})
}

// findsWhatWasJustStored: a paraphrased query finds a memory immediately, 100 out of
// 100 times, and a deleted memory is removed from the database and the index.
func (h *testServer) findsWhatWasJustStored(t *testing.T, s realStores) {
	t.Helper()
	token := s.tenant(t, "fresh", "alice", false)
	colors := []string{"crimson", "azure", "emerald", "golden", "violet", "ivory", "scarlet", "turquoise", "amber", "silver"}
	things := []string{"bicycle", "teapot", "umbrella", "violin", "telescope", "backpack", "lantern", "armchair", "kayak", "typewriter"}
	ids := make([]string, 0, 100)
	degraded := 0 // searches that Milvus did not answer in time, as on a busy machine
	for i := range 100 {
		colour, thing := colors[i%10], things[i/10]
		id := h.ok(t, token, "POST", "/api/memory", fmt.Sprintf(`{"text":"2025-05-09 Bought a %s %s at the flea market."}`, colour, thing)).json(t)["memoryId"].(string)
		query := url.QueryEscape(fmt.Sprintf("which %s did I purchase that is %s?", thing, colour))
		got := h.ok(t, token, "GET", "/api/v2/memory?count=3&query="+query, "")
		if !strings.Contains(got.body, id) {
			t.Errorf("memory %d is not among the best three, degraded %q: %s", i, got.header.Get("X-Degraded"), got.body)
		}
		if got.header.Get("X-Degraded") != "" {
			degraded++
		}
		ids = append(ids, id)
	}
	if _, indexed := s.index.(*milvus.Index); degraded > 50 || degraded > 0 && !indexed {
		t.Errorf("%d of 100 searches were degraded", degraded)
	}
	got := h.ok(t, token, "POST", "/api/memories/bulk-delete", `{"memoryIds":["`+strings.Join(ids, `","`)+`"]}`)
	if !strings.Contains(got.body, `"deletedCount":100,"errors":[]`) {
		t.Errorf("bulk delete: %s", got.body)
	}
	if got := h.ok(t, token, "GET", "/api/v2/memory?query=flea+market", ""); !strings.Contains(got.body, `"memories":[]`) {
		t.Errorf("deleted memories are found: %s", got.body)
	}
	h.holds(t, s, "fresh", 0)
}

// ingestsConversations: repeated ingestion adds and replaces without duplicates; a
// conversation with too many tokens is accepted and fails; the quota blocks.
func (h *testServer) ingestsConversations(t *testing.T, s realStores) {
	t.Helper()
	token := s.tenant(t, "chats", "alice", false)
	send := func(body string) map[string]any {
		return h.ok(t, token, "POST", "/api/chat-history/ingest/custom-online", body).json(t)
	}
	first := send(ingestText)
	again := send(strings.Replace(ingestText, "By the window.", "On the aisle.", 1))
	if first["conversationId"] != again["conversationId"] || first["importId"] == again["importId"] {
		t.Errorf("sent twice: %v and %v", first, again)
	}
	got := h.ok(t, token, "GET", "/api/chat-history/conversation?conversationId="+first["conversationId"].(string), "")
	if !strings.Contains(got.body, `"total":2`) || !strings.Contains(got.body, "On the aisle.") || strings.Contains(got.body, "window") {
		t.Errorf("after the second sending: %s", got.body)
	}
	if got := h.ok(t, token, "POST", "/api/chat-history/search", `{"query":"aisle or window?","contextChunks":1}`); !strings.Contains(got.body, "On the aisle.") {
		t.Errorf("search: %s", got.body)
	}
	h.reportsFailedIngests(t, token)
	for i := range 11 {
		send(strings.Replace(ingestText, "x-1", fmt.Sprintf("x-%d", i), 1))
	}
	if got := h.ok(t, token, "GET", "/api/chat-history/count", ""); strings.TrimSpace(got.body) != `{"count":10}` {
		t.Errorf("over the quota: %s, want 10", got.body)
	}
	if got := h.ok(t, token, "GET", "/api/chat-history/chats?status=blocked", ""); !strings.Contains(got.body, `"total":1,`) {
		t.Errorf("blocked: %s", got.body)
	}
}

// reportsFailedIngests: a conversation with too many tokens is accepted, and the response says that its import failed.
func (h *testServer) reportsFailedIngests(t *testing.T, token string) {
	t.Helper()
	body := strings.Replace(strings.Replace(ingestText, "x-1", "x-long", 1), "By the window.", strings.Repeat("window seat ", 60000), 1)
	imports := map[any]bool{}
	for _, attempt := range []string{"first", "repeated"} {
		long := h.call(t, token, "POST", "/api/chat-history/ingest/custom-online", body, "Idempotency-Key", "long")
		if long.status != 200 {
			t.Fatalf("%s: %d %s", attempt, long.status, long.body)
		}
		sent := long.json(t)
		imports[sent["importId"]] = true
		if sent["queued"] != true || sent["conversationId"] == "" {
			t.Errorf("%s: %s", attempt, long.body)
		}
		if got := long.header.Get(headerImport); got != "failed" {
			t.Errorf("%s: X-Import-Status is %q, want failed", attempt, got)
		}
		got := h.ok(t, token, "GET", fmt.Sprintf("/api/chat-history/imports/%v", sent["importId"]), "").body
		if !strings.Contains(got, `"status":"failed"`) || !strings.Contains(got, "more than 100000 tokens") {
			t.Errorf("%s: the import is %s", attempt, got)
		}
	}
	if len(imports) != 1 {
		t.Errorf("the repeated request has another import: %v", imports)
	}
	stored := h.ok(t, token, "POST", "/api/chat-history/ingest/custom-online", ingestText)
	if got := stored.header.Get(headerImport); got != "" {
		t.Errorf("X-Import-Status of a stored conversation is %q, want none", got)
	}
}

// eventually retries until there is no complaint.
func (h *testServer) eventually(t *testing.T, complaint func() string) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		text := complaint()
		if text == "" {
			return
		}
		select {
		case <-deadline:
			t.Fatal(text)
		case <-tick.C:
		}
	}
}
