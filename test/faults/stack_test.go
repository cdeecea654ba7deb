package faults_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/devenv/milvus"
	"github.com/mnemo-dev/mnemo/hack/devenv/postgres"
	"github.com/mnemo-dev/mnemo/internal/testkit"
	"github.com/mnemo-dev/mnemo/test/installation"
)

// servers is the number of API servers.
const servers = 2

// stack is the whole platform. Each connection between its parts leads through a proxy.
type stack struct {
	*installation.Installation
	t testing.TB

	options  devenv.Options
	postgres *postgres.Server
	milvus   *milvus.Server
	embedder *embedder
	disk     *disk // nil if it cannot be filled
	clock    *clock

	proxies   map[string]*toxiproxy.Proxy // by the name of the server behind them
	addresses [servers]string             // of API servers
	servers   [servers]*installation.Process
	own       bool // the stores
	operator  *installation.Process
}

// serveEnv is the configuration of API servers.
var serveEnv = []string{"MNEMO_EMBEDDINGS_TIMEOUT=3s"}

// newStack starts all parts. own stores can be stopped; otherwise it uses those that all
// tests share, which must not be disturbed.
func newStack(t *testing.T, own bool, o installation.Options) *stack {
	t.Helper()
	s := &stack{t: t, own: own, embedder: newEmbedder(t), proxies: map[string]*toxiproxy.Proxy{}}
	o.Embeddings = s.embedder.url
	if own {
		s.startStores(t)
		o.Milvus = testkit.MilvusAddr{Addr: s.milvus.Addr, User: s.milvus.User, Password: s.milvus.Password}
	}
	database, err := url.Parse(testkit.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	o.DatabaseThrough = s.proxy(t, "postgres", database.Host)
	o.Through = s.proxy(t, "milvus", cmp.Or(o.Milvus.Addr, testkit.Milvus(t).Addr))
	s.Installation = installation.New(t, o)
	s.installTriggers(t)
	for i := range s.servers {
		s.addresses[i] = testkit.FreeAddress(t)
		s.proxy(t, server(i), s.addresses[i])
		s.serve(i)
	}
	s.operate()
	for i := range s.servers {
		s.awaitReady(i)
	}
	return s
}

func server(i int) string { return fmt.Sprint("server ", i) }

// startStores starts PostgreSQL, with the settings of production, and Milvus.
func (s *stack) startStores(t *testing.T) {
	t.Helper()
	cache, err := devenv.OpenCache(devenv.NewProgress(os.Stderr))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "mnemo-faults-") //nolint:usetesting // PostgreSQL's user must be able to traverse it
	if err == nil {
		err = os.Chmod(dir, 0o711)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(os.RemoveAll(postgres.Dir(dir)), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	s.options = devenv.Options{Dir: dir, Cache: cache, Durable: true}
	s.clock, s.options.Env = newClock(t, cache, dir)
	if s.milvus, err = milvus.Start(t.Context(), s.options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.milvus.Kill() })
	s.startPostgres()
	if err := s.postgres.Stop(); err != nil {
		t.Fatal(err)
	}
	s.disk = newDisk(t, filepath.Join(postgres.Dir(dir), "data"))
	s.startPostgres()
	t.Cleanup(func() { _ = s.postgres.Kill() })
	t.Setenv("MNEMO_TEST_POSTGRES", s.postgres.URL)
}

// startPostgres starts PostgreSQL; after a crash, when its sessions have ended. It frees
// the disk first: recovery needs space.
func (s *stack) startPostgres() {
	s.t.Helper()
	installation.Eventually(s.t, time.Minute, func() string {
		if s.disk != nil {
			s.disk.free(s.t)
		}
		server, err := postgres.Start(context.Background(), s.options)
		if err != nil {
			return err.Error()
		}
		s.postgres = server
		return ""
	})
}

// proxy starts a proxy in front of a server and returns its address.
func (s *stack) proxy(t *testing.T, name, upstream string) string {
	t.Helper()
	p := toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), name, testkit.FreeAddress(t), upstream)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	s.proxies[name] = p
	return p.Listen
}

// serve starts an API server and operate the operator, also after they were killed.
func (s *stack) serve(i int) { s.servers[i] = s.ServeAt(s.t, s.addresses[i], serveEnv...) }

func (s *stack) operate() { s.operator = s.Operate(s.t) }

func (s *stack) awaitReady(i int) {
	s.t.Helper()
	installation.Eventually(s.t, installation.Patience, func() string {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.servers[i].URL+"/readyz", nil)
		if err != nil {
			return err.Error()
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			return err.Error()
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return response.Status
		}
		return ""
	})
}

// restartEnded starts the processes that exited, as Kubernetes does.
func (s *stack) restartEnded() {
	for i, p := range s.servers {
		select {
		case <-p.Ended:
			s.serve(i)
		default:
		}
	}
	select {
	case <-s.operator.Ended:
		s.operate()
	default:
	}
}

// url returns the address at which clients reach a server.
func (s *stack) url(i int) string { return "http://" + s.proxies[server(i)].Listen }

// isReady reports whether the operator has reconciled a Tenant.
func (s *stack) isReady(ctx context.Context, name string) bool {
	tn := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}}
	return s.Get(ctx, client.ObjectKeyFromObject(tn), tn) == nil && tn.Status.ObservedGeneration == tn.Generation &&
		meta.IsStatusConditionTrue(tn.Status.Conditions, v1alpha1.Ready)
}

// awaitTenant waits until a Tenant is ready.
func (s *stack) awaitTenant(ctx context.Context, name string) {
	s.t.Helper()
	installation.Eventually(s.t, installation.Patience, func() string {
		if !s.isReady(ctx, name) {
			return strings.TrimSpace("Tenant " + name + " is not ready")
		}
		return ""
	})
}
