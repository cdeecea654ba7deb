package controllers_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/apiserver"
	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/embed"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/jobs"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/milvus"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/testkit"
	"github.com/mnemo-dev/mnemo/internal/tokens"
)

// cacheTTL is longer than any test, so that a change can only reach an API server
// through a notification.
const cacheTTL = time.Hour

// patience is the longest wait for a condition, however slow the machine is.
const patience = 3 * time.Minute

// live is the whole data path on real stores: an operator with its service
// account, two API servers with a cache each, and the job workers. A test can
// close the gates: the operator's to PostgreSQL, the API servers' to PostgreSQL, and
// that of the operator and the workers to Milvus.
type live struct {
	client.Client
	t          *testing.T   // the test that owns the operator
	db         *postgres.DB // not behind a gate
	index      *milvus.Index
	pg, mv     *testkit.Gate
	served     *testkit.Gate      // the API servers' connection to PostgreSQL
	stores     controllers.Stores // the operator's
	replicas   []string           // URLs
	namespaces []string
	stop       func() // stops the operator
}

var quiet = slog.New(slog.DiscardHandler)

// newLive starts everything except the operator and creates namespaces.
func newLive(t *testing.T, namespaces int) *live {
	t.Helper()
	l := &live{Client: cluster(t), t: t, stop: func() {}}
	for range namespaces {
		l.namespaces = append(l.namespaces, newNamespace(t, l.Client))
	}
	embedder, err := embed.OpenLocal(embed.LocalConfig{Dir: testkit.ModelDir(t), Library: testkit.ONNXRuntime(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = embedder.Close() })
	database, addr := postgrestest.Create(t), testkit.Milvus(t)
	prefix := "live" + strings.ToLower(rand.Text()) + "_"
	l.db, l.index = postgrestest.Open(t, database), openIndex(t, addr, prefix, embedder.Dimensions())
	app, err := url.Parse(database.AppURL)
	if err != nil {
		t.Fatal(err)
	}
	l.pg, l.served, l.mv = testkit.NewGate(t, app.Host), testkit.NewGate(t, app.Host), testkit.NewGate(t, addr.Addr)
	through := func(gate *testkit.Gate) *postgres.DB {
		url := *app
		url.Host = gate.Addr
		return postgrestest.Open(t, postgrestest.Database{AppURL: url.String()})
	}
	for _, gate := range []*testkit.Gate{l.pg, l.served, l.mv} {
		gate.Open(t)
	}
	for range 2 {
		l.replicas = append(l.replicas, l.serve(t, through(l.served), embedder))
	}
	addr.Addr = l.mv.Addr
	db, index := through(l.pg), openIndex(t, addr, prefix, embedder.Dimensions())
	l.work(t, index, embedder)
	l.stores = controllers.Stores{Tenants: db, Tokens: db, Records: db, Webhooks: db, Partitions: index}
	return l
}

func openIndex(t *testing.T, addr testkit.MilvusAddr, prefix string, dimensions int) *milvus.Index {
	t.Helper()
	index, err := milvus.Open(t.Context(), milvus.Config{
		Address: addr.Addr, Username: addr.User, Password: addr.Password, Prefix: prefix, Dimensions: dimensions,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = index.Close() })
	return index
}

// work starts the job workers.
func (l *live) work(t *testing.T, index *milvus.Index, embedder retrieve.Embedder) {
	t.Helper()
	imports := l.db.Imports()
	importing := importer.New(importer.Config{Leases: imports, Files: imports, CountTokens: tokens.Count})
	config, err := jobs.Config(indexing.NewIndexer(l.db, index, retrieve.Embedders{1: embedder}, quiet), l.db, importing, quiet)
	if err != nil {
		t.Fatal(err)
	}
	workers, err := l.db.Jobs(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := workers.Start(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := workers.StopAndCancel(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// serve starts an API server and returns its URL.
func (l *live) serve(t *testing.T, db *postgres.DB, embedder retrieve.Embedder) string {
	t.Helper()
	engine := retrieve.New(retrieve.Config{Searcher: db, Index: l.index, Embedders: retrieve.Embedders{1: embedder}, Log: quiet})
	memories, chats, cache := db.Memories(), db.Conversations(), apiserver.NewCacheTTL(cacheTTL)
	server := apiserver.New(apiserver.Config{
		Audit: db,
		Memories: memory.NewService(memory.Config{
			Store: memories, Buckets: memories, Searcher: engine, Index: l.index, Embedders: retrieve.Embedders{1: embedder}, CountTokens: tokens.Count,
		}),
		Chats: chat.NewService(chat.Config{
			Store: chats, Passages: chats, Searcher: engine,
			Index: l.index, Embedders: retrieve.Embedders{1: embedder}, CountTokens: tokens.CountUpTo, Log: quiet,
		}),
		Imports: &importer.Service{Imports: db.Imports(), Uploads: db.Imports()},
		Tokens:  db, Rates: db, Users: db, Cache: cache, Log: quiet,
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { done <- server.Serve(listener) }()
	go func() { done <- db.Listen(ctx, cache) }()
	t.Cleanup(func() {
		stop()
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
	return "http://" + listener.Addr().String()
}

// operate starts the operator. It ends with l.stop or with the test that owns l.
func (l *live) operate(config controllers.Config) {
	t := l.t
	restConfig := rest.CopyConfig(kubeConfig)
	restConfig.Impersonate.UserName = "system:serviceaccount:mnemo-system:mnemo-operator"
	changes := make(chan tenant.ID, 100)
	config.URL, config.Namespaces, config.Logger, config.Changes = l.replicas[0], l.namespaces, quiet, changes
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { done <- controllers.Run(ctx, restConfig, config, l.stores) }()
	go func() { done <- l.db.ListenTenants(ctx, func(id tenant.ID) { changes <- id }) }()
	stopped := false
	l.stop = func() {
		if stopped {
			return
		}
		stopped = true
		stop()
		for range 2 {
			if err := <-done; err != nil {
				t.Errorf("operator: %v", err)
			}
		}
	}
	t.Cleanup(l.stop)
}

// unlimitedRate is a quota that a test's polling cannot exhaust.
const unlimitedRate = `"requestsPerMinute":1000000`

// apply creates a Tenant or merges a patch into its spec.
func (l *live) apply(t *testing.T, key types.NamespacedName, spec string) {
	t.Helper()
	tn := &v1alpha1.Tenant{}
	tn.Namespace, tn.Name = key.Namespace, key.Name
	if err := l.Get(t.Context(), key, tn); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	} else if err != nil {
		if err := json.Unmarshal([]byte(spec), &tn.Spec); err != nil {
			t.Fatal(err)
		}
		if err := l.Create(t.Context(), tn); err != nil {
			t.Fatalf("create Tenant: %v", err)
		}
		return
	}
	l.patch(t, key, `{"spec":`+spec+`}`)
}

func (l *live) patch(t *testing.T, key types.NamespacedName, patch string) {
	t.Helper()
	tn := &v1alpha1.Tenant{}
	tn.Namespace, tn.Name = key.Namespace, key.Name
	if err := l.Patch(t.Context(), tn, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatalf("patch Tenant: %v", err)
	}
}

// token returns the token in a user's Secret, "" without a Secret.
func (l *live) token(t *testing.T, key types.NamespacedName, user string) string {
	t.Helper()
	return l.secretValue(t, key, user, v1alpha1.SecretToken)
}

// signIn begins a session with the name and password in a user's Secret.
func (l *live) signIn(t *testing.T, key types.NamespacedName, user string) tenant.Hash {
	t.Helper()
	name, _ := tenant.ParseSignInName(l.secretValue(t, key, user, v1alpha1.SecretSignInName))
	session := tenant.HashSecret("session of " + user)
	if err := l.db.SignIn(t.Context(), tenant.SignIn{Name: name, Address: "192.0.2.1", Session: session, Lifetime: time.Hour,
		Password: tenant.HashSecret(l.secretValue(t, key, user, v1alpha1.SecretPassword))}); err != nil {
		t.Fatalf("sign in as %v: %v", name, err)
	}
	return session
}

// secretValue returns the value of a key of a user's Secret, "" without a Secret.
func (l *live) secretValue(t *testing.T, key types.NamespacedName, user, name string) string {
	t.Helper()
	secret := secretNamed(key.Namespace, key.Name+"-"+user+"-access")
	if err := l.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); client.IgnoreNotFound(err) != nil {
		t.Fatalf("get Secret: %v", err)
	}
	return string(secret.Data[name])
}

// request sends a request to a replica and returns the status and the body.
func (l *live) request(t *testing.T, replica int, token, method, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, l.replicas[replica]+path, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// answers reports whether every replica responds to a listing with the status.
func (l *live) answers(t *testing.T, token string, status int) bool {
	t.Helper()
	for i := range l.replicas {
		if got, _ := l.request(t, i, token, http.MethodGet, "/api/v2/memory?count=1", ""); got != status {
			return false
		}
	}
	return true
}

// remember stores a memory through a replica and returns the status.
func (l *live) remember(t *testing.T, replica int, token, text string) int {
	t.Helper()
	status, _ := l.request(t, replica, token, http.MethodPost, "/api/memory", fmt.Sprintf(`{"text":%q}`, text))
	return status
}

// storeConversation stores a conversation with the title, dated to a day of May.
func (l *live) storeConversation(t *testing.T, token, title string, day int) {
	t.Helper()
	body := fmt.Sprintf(`{"platform":"custom","conversation":{"id":%[1]q,"title":%[1]q,"createdAt":"2026-05-%02[2]dT00:00:00Z",
		"messages":[{"id":"1","role":"user","content":"What about %[1]s?","createdAt":"2026-05-%02[2]dT00:00:00Z"}]}}`, title, day)
	if status, answer := l.request(t, 0, token, http.MethodPost, "/api/chat-history/ingest/custom-online", body); status != http.StatusOK {
		t.Fatalf("store conversation: %d %s", status, answer)
	}
}

// active returns the number of active conversations at a replica and their
// titles, newest first.
func (l *live) active(t *testing.T, replica int, token string) (count int, titles string) {
	t.Helper()
	var counted struct{ Count int }
	var listed struct{ Items []struct{ Title string } }
	for path, into := range map[string]any{"/api/chat-history/count": &counted, "/api/chat-history/chats": &listed} {
		_, answer := l.request(t, replica, token, http.MethodGet, path, "")
		if err := json.Unmarshal([]byte(answer), into); err != nil {
			t.Fatalf("%s: %v: %s", path, err, answer)
		}
	}
	for _, c := range listed.Items {
		titles += " " + c.Title
	}
	return counted.Count, strings.TrimSpace(titles)
}

// record returns the stored record of a tenant, a zero one if there is none.
func (l *live) record(t *testing.T, resource types.UID) tenant.Record {
	t.Helper()
	list, err := l.db.Records(t.Context(), tenant.RecordsOf{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list {
		if r.Resource == tenant.ID(resource) {
			return r
		}
	}
	return tenant.Record{}
}

// hasPartition lists the partition, which fails if it does not exist.
func (l *live) hasPartition(t *testing.T, r tenant.Record) bool {
	t.Helper()
	_, err := l.index.List(t.Context(), r.ID, r.Placement, 0, 1)
	return err == nil
}

// scope returns the scope of a token.
func (l *live) scope(t *testing.T, token string) tenant.Scope {
	t.Helper()
	who, err := l.db.Identify(t.Context(), tenant.HashSecret(token))
	if err != nil {
		t.Fatal(err)
	}
	return who.Scope
}

// waitFor polls until a condition holds and returns how long that took.
func waitFor(t *testing.T, what string, holds func() bool) time.Duration {
	t.Helper()
	start, tick, deadline := time.Now(), time.NewTicker(10*time.Millisecond), time.After(patience)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
	return time.Since(start)
}
