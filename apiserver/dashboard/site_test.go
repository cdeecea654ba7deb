package dashboard_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/apiserver"
	"github.com/mnemo-dev/mnemo/apiserver/dashboard"
	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/embed"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/jobs"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/milvus"
	"github.com/mnemo-dev/mnemo/internal/oauth"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/testkit"
	"github.com/mnemo-dev/mnemo/internal/tokens"
)

// patience is the timeout of waiting for expected states. Beside 70 other processes on 4 cores, a check
// of a page has needed more than a minute.
const patience = 3 * time.Minute

// site consists of two replicas of the API server on real stores.
type site struct {
	database postgrestest.Database
	db       *postgres.DB
	index    *milvus.Index
	embedder *embed.Local
	urls     [2]string
	issuer   string // of the identity provider

	mu                sync.Mutex
	tenants           int
	grantsUnavailable sync.Map // the scopes whose grants cannot be listed
	// sessionsUnavailable are the scopes whose sessions cannot be read.
	sessionsUnavailable sync.Map
}

// grants is a store whose List can fail.
type grants struct {
	*postgres.DB
	grantsUnavailable *sync.Map
}

func (g grants) ConnectedApps(ctx context.Context, scope tenant.Scope) ([]oauth.ConnectedApp, error) {
	if _, grantsUnavailable := g.grantsUnavailable.Load(scope); grantsUnavailable {
		return nil, fault.New(fault.Unavailable, "PostgreSQL is unavailable")
	}
	return g.DB.ConnectedApps(ctx, scope)
}

// sessions is a store whose Session can fail.
type sessions struct {
	*postgres.DB
	sessionsUnavailable *sync.Map
}

func (s sessions) Session(ctx context.Context, secret tenant.Hash) (tenant.Session, error) {
	who, err := s.DB.Session(ctx, secret)
	if _, unavailable := s.sessionsUnavailable.Load(who.Scope); unavailable {
		return tenant.Session{}, fault.New(fault.Unavailable, "the database is unavailable; retry")
	}
	return who, err
}

func newSite(t *testing.T) *site {
	t.Helper()
	embedder, err := embed.OpenLocal(embed.LocalConfig{Dir: testkit.ModelDir(t), Library: testkit.ONNXRuntime(t)})
	if err != nil {
		t.Fatal(err)
	}
	addr := testkit.Milvus(t)
	index, err := milvus.Open(t.Context(), milvus.Config{Address: addr.Addr, Username: addr.User, Password: addr.Password,
		Prefix: "web" + strings.ToLower(rand.Text()) + "_", Dimensions: embedder.Dimensions()})
	if err != nil {
		t.Fatal(err)
	}
	database := postgrestest.Create(t)
	s := &site{database: database, db: postgrestest.Open(t, database), index: index, embedder: embedder}
	s.work(t)
	s.chooseIssuer(t)
	var listeners [len(s.urls)]net.Listener
	for i := range s.urls {
		if listeners[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		s.urls[i] = "http://" + listeners[i].Addr().String()
	}
	for i, l := range listeners {
		s.serve(t, l, i)
	}
	s.startProvider(t)
	return s
}

// work runs the job workers until the test ends.
func (s *site) work(t *testing.T) {
	t.Helper()
	imports := s.db.Imports()
	importing := importer.New(importer.Config{Leases: imports, Files: imports, CountTokens: tokens.Count})
	config, err := jobs.Config(indexing.NewIndexer(s.db, s.index, retrieve.Embedders{1: s.embedder}, slog.New(slog.DiscardHandler)), s.db, importing, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	workers, err := s.db.Jobs(config)
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
		_ = s.index.Close()
		_ = s.embedder.Close()
	})
}

// serve starts a replica with its own cache. Both are configured with the URL of the
// first one; the second is behind a proxy.
func (s *site) serve(t *testing.T, l net.Listener, replica int) {
	t.Helper()
	public, err := url.Parse(s.urls[0])
	if err != nil {
		t.Fatal(err)
	}
	var proxies []netip.Prefix
	if replica == 1 {
		proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	}
	engine := retrieve.New(retrieve.Config{Searcher: s.db, Index: s.index, Embedders: retrieve.Embedders{1: s.embedder}})
	cache := apiserver.NewCache()
	server := apiserver.New(apiserver.Config{
		Memories: memory.NewService(memory.Config{Store: s.db.Memories(), Buckets: s.db.Memories(), Searcher: engine,
			Index: s.index, Embedders: retrieve.Embedders{1: s.embedder}, CountTokens: tokens.Count}),
		Chats: chat.NewService(chat.Config{Store: s.db.Conversations(), Passages: s.db.Conversations(),
			Searcher: engine, Index: s.index, Embedders: retrieve.Embedders{1: s.embedder},
			CountTokens: tokens.CountUpTo, Synthesizer: chatModel(t)}),
		Imports:  &importer.Service{Imports: s.db.Imports(), Uploads: s.db.Imports()},
		Accounts: account.NewService(account.Config{Store: s.db.Accounts()}), Audit: s.db,
		Tokens: s.db, Rates: s.db, Cache: cache, Sessions: sessions{s.db, &s.sessionsUnavailable}, Access: s.db, UserTokens: s.db, Holdings: s.db.Holdings, Administration: s.db, Platform: s.db, Providers: []*dashboard.Provider{s.provider()},
		URL: public, TrustedProxies: proxies, SecretDetails: replica == 1,
		OAuth: oauth.NewService(oauth.Config{Clients: s.db, Grants: grants{s.db, &s.grantsUnavailable}, Access: s.db, URL: public, Random: rand.Reader, Now: time.Now}),
	})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := server.Serve(l); err != nil {
			t.Error(err)
		}
	})
	wg.Go(func() { _ = s.db.Listen(ctx, cache) })
	t.Cleanup(func() {
		cancel()
		// Do not wait for the connections that browsers keep open.
		stop, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = server.Shutdown(stop)
		wg.Wait()
	})
}

// user is a user with the credentials issued by the operator.
type user struct {
	tenant.Scope
	spec     tenant.Spec
	name     tenant.SignInName
	password string
	token    string
}

// newTenant creates a tenant whose users have a token and a password.
func (s *site) newTenant(t *testing.T, change func(*tenant.Spec), names ...string) []user {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tenants++
	spec := tenant.Spec{
		ID: tenant.ID(fmt.Sprintf("0196b2f4-0000-7000-8000-%012x", s.tenants)), Cluster: "c", Namespace: "default", NamespaceUID: "n",
		Name: fmt.Sprintf("acme%d", s.tenants), DisplayName: "Acme", DeletionPolicy: tenant.Retain, Isolation: tenant.Partition,
		Quota: tenant.DefaultQuota(),
	}
	spec.Quota.Memories, spec.Quota.Conversations, spec.Quota.Storage = 1000, 50, 64<<20
	spec.Quota.Users, spec.Quota.RequestsPerMinute = 10, 100000
	for _, name := range names {
		spec.Users = append(spec.Users, tenant.UserSpec{Name: name})
	}
	if change != nil {
		change(&spec)
	}
	stored, err := s.db.Apply(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	location, err := s.db.EnsurePlacement(t.Context(), spec.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := placement.WaitLoaded(s.index).Ensure(t.Context(), placement.Placement{Location: location}); err != nil {
		t.Fatal(err)
	}
	var users []user
	for _, u := range stored.Users {
		made := user{spec: spec, Scope: tenant.Scope{Tenant: spec.ID, User: u.ID},
			name: tenant.SignInName{Namespace: spec.Namespace, Tenant: spec.Name, User: u.Name}}
		made.token, made.password = s.issue(t, made, 1)
		users = append(users, made)
	}
	return users
}

// issue issues a token and a password like the operator.
func (s *site) issue(t *testing.T, u user, generation int64) (token, password string) {
	t.Helper()
	token, err := tenant.NewToken(0, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	password, err = tenant.NewPassword(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	err = s.db.Install(t.Context(), u.Tenant, u.name.User, tenant.Credential{
		Generation: generation, TokenHash: tenant.HashSecret(token), PasswordHash: tenant.HashSecret(password), Issuer: tenant.IssuerOperator,
	})
	if err != nil {
		t.Fatal(err)
	}
	return token, password
}

// api calls the HTTP API of a replica.
func (s *site) api(t *testing.T, replica int, token, method, path, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.urls[replica]+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	return do(t, http.DefaultClient, r)
}

// visitor is an HTTP client with cookies.
type visitor struct {
	*http.Client
	url string
}

func (s *site) visitor(t *testing.T, replica int) visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return visitor{&http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, s.urls[replica]}
}

// get requests a page.
func (v visitor) get(t *testing.T, path string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, v.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html")
	return do(t, v.Client, r)
}

// post sends a form; headers override those of a same-origin browser.
func (v visitor) post(t *testing.T, path string, form url.Values, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return do(t, v.Client, r)
}

// signIn signs in and returns the status.
func (v visitor) signIn(t *testing.T, u user) int {
	t.Helper()
	status, _ := v.post(t, "/sign-in", url.Values{"name": {u.name.String()}, "password": {u.password}})
	return status
}

func do(t *testing.T, client *http.Client, r *http.Request) (int, string) {
	t.Helper()
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}
