package apiserver

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tokens"
)

// testServer is a running server with tokens of its users; stores is nil if they
// are real.
type testServer struct {
	*Server
	stores *fakeStores
	addr   string
	log    *journal

	alice     string // a user of tenant one
	bob       string // another one of the same tenant
	carol     string // of tenant two
	suspended string // of tenant three, which is suspended
}

// newTestServer starts a server on fake stores; change may alter its configuration.
func newTestServer(t testing.TB, change ...func(*Config)) *testServer {
	t.Helper()
	h := &testServer{stores: newFakeStores(), log: &journal{}}
	h.alice = h.user(t, tenant.Identity{Scope: tenant.Scope{Tenant: "one", User: 1}})
	h.bob = h.user(t, tenant.Identity{Scope: tenant.Scope{Tenant: "one", User: 2}})
	h.carol = h.user(t, tenant.Identity{Scope: tenant.Scope{Tenant: "two", User: 3}})
	h.suspended = h.user(t, tenant.Identity{Scope: tenant.Scope{Tenant: "three", User: 4}, Suspended: true})
	memories, chats := fakeMemories{h.stores}, fakeChats{h.stores}
	config := Config{
		Memories: memory.NewService(memory.Config{Store: memories, Buckets: memories, Searcher: memories,
			Index: fakeIndex{}, Embedders: retrieve.Embedders{0: fakeEmbedder{}}, CountTokens: tokens.Count}),
		Chats: chat.NewService(chat.Config{Store: chats, Passages: chats, Searcher: memories,
			Index: fakeIndex{}, Embedders: retrieve.Embedders{0: fakeEmbedder{}}, CountTokens: tokens.CountUpTo}),
		Imports:    &importer.Service{Imports: chats, Uploads: chats},
		Accounts:   account.NewService(account.Config{Store: fakeAccounts{h.stores}}),
		Audit:      fakeAudit{h.stores},
		Tokens:     h.stores,
		Users:      fakeUsers{h.stores},
		UserTokens: fakeUserTokens{h.stores},
	}
	for _, f := range change {
		f(&config)
	}
	h.start(t, config)
	return h
}

// start runs the server until the test ends.
func (h *testServer) start(t testing.TB, config Config) {
	t.Helper()
	config.Log = slog.New(slog.NewTextHandler(h.log, nil))
	// A stalled request must not delay the shutdown.
	config.ReadTimeout = cmp.Or(config.ReadTimeout, 5*time.Second)
	h.Server = New(config)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.addr = l.Addr().String()
	done := make(chan error, 1)
	go func() { done <- h.Serve(l) }()
	t.Cleanup(func() {
		if err := h.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// journal is a log buffer for concurrent use.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// seed is a deterministic source of random bytes.
type seed byte

func (s seed) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(s) + byte(i)
	}
	return len(p), nil
}

func (h *testServer) user(t testing.TB, who tenant.Identity) string {
	t.Helper()
	token, err := tenant.NewToken(0, seed(who.User))
	if err != nil {
		t.Fatal(err)
	}
	who.Quota.PageTokens, who.Access = 25000, tenant.FullAccess
	if who.Quota.RequestsPerMinute == 0 {
		who.Quota.RequestsPerMinute = 1000000
	}
	h.stores.known[tenant.HashSecret(token)] = who
	return token
}

// answer is a complete response.
type answer struct {
	status int
	header http.Header
	body   string
	close  bool
}

// json decodes the body.
func (a answer) json(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		t.Fatalf("body %q: %v", a.body, err)
	}
	return v
}

// call sends a request, with a body as JSON, and checks the response against the
// contract.
func (h *testServer) call(t *testing.T, token, method, path, body string, headers ...string) answer {
	t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+h.addr+path, reader)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	got := answer{resp.StatusCode, resp.Header, string(raw), resp.Close}
	theContract().see(t, method, path, got)
	return got
}

// ok is call that requires status 200.
func (h *testServer) ok(t *testing.T, token, method, path, body string) answer {
	t.Helper()
	a := h.call(t, token, method, path, body)
	if a.status != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, path, a.status, a.body)
	}
	return a
}
