package installation

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/jackc/pgx/v5/pgxpool"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/milvus"
	"github.com/mnemo-dev/mnemo/internal/milvus/milvustest"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// dimensions is the length of the installation's vectors.
const dimensions = 32

// Installation is a namespace of Tenants with separate stores.
type Installation struct {
	client.Client // the administrator's, uncached
	Namespace     string
	// DB and Index are the stores, as the program opens them; Owner is the
	// database as the role that sees everything.
	DB    *postgres.DB
	Owner *pgxpool.Pool
	Index *milvus.Index
	// Milvus is the server that Index is in.
	Milvus testkit.MilvusAddr
	// Kubeconfig is a file for the operator's account, AppURL the database for
	// the app's role.
	Kubeconfig, AppURL string

	program    string
	generation placement.Generation
	env        []string // of every process
}

// Options configure an installation.
type Options struct {
	// Milvus is the server to use. Default: the one that all tests share.
	Milvus testkit.MilvusAddr
	// Through is the address at which processes reach Milvus. Default: its own.
	Through string
	// DatabaseThrough is the address at which processes reach PostgreSQL. Default: its own.
	DatabaseThrough string
	// Embeddings is the URL of the embedding endpoint. Default: Embeddings().
	Embeddings string
	// OnDemand creates tenants that enter the index as in production: when one of their users has outgrown
	// exact scoring. By default, each is placed in an index when it is created.
	OnDemand bool
	// Program is the path of mnemo. Default: the one that all tests share.
	Program string
	// Env is added to the environment of every process.
	Env []string
}

// discardLogs discards the logs of controller-runtime.
var discardLogs = sync.OnceFunc(func() { log.SetLogger(logr.Discard()) })

// New creates an installation without processes. It is removed after the test.
func New(tb testing.TB, o Options) *Installation {
	tb.Helper()
	discardLogs()
	if o.Milvus == (testkit.MilvusAddr{}) {
		o.Milvus = testkit.Milvus(tb)
	}
	if o.Program == "" {
		o.Program = testkit.Program(tb)
	}
	i := &Installation{
		Milvus:     o.Milvus,
		program:    o.Program,
		generation: placement.Generation{Model: "test" + strings.ToLower(rand.Text()), Dimensions: dimensions},
	}
	i.open(tb, o.OnDemand)
	i.join(tb)
	i.Kubeconfig = i.kubeconfig(tb)
	if o.Embeddings == "" {
		server := httptest.NewServer(Embeddings())
		tb.Cleanup(server.Close)
		o.Embeddings = server.URL
	}
	i.env = append([]string{
		"KUBECONFIG=" + i.Kubeconfig, "DATABASE_URL=" + through(tb, i.AppURL, o.DatabaseThrough),
		"MILVUS_ADDRESS=" + cmp.Or(o.Through, o.Milvus.Addr), "MILVUS_USERNAME=" + o.Milvus.User, "MILVUS_PASSWORD=" + o.Milvus.Password,
		"MNEMO_EMBEDDER=openai", "MNEMO_EMBEDDINGS_URL=" + o.Embeddings,
		"MNEMO_EMBEDDINGS_MODEL=" + i.generation.Model, fmt.Sprintf("MNEMO_EMBEDDINGS_DIMENSIONS=%d", dimensions),
		"MNEMO_WEBHOOKS=true", "MNEMO_URL=https://mnemo.test", "MNEMO_WATCH_NAMESPACES=" + i.Namespace, "MNEMO_LEADER_ELECTION_NAMESPACE=" + i.Namespace,
	}, o.Env...)
	return i
}

// through replaces the address in a database URL unless addr is empty.
func through(tb testing.TB, database, addr string) string {
	tb.Helper()
	u, err := url.Parse(database)
	if err != nil {
		tb.Fatal(err)
	}
	u.Host = cmp.Or(addr, u.Host)
	return u.String()
}

// open creates the database and opens the stores.
func (i *Installation) open(tb testing.TB, onDemand bool) {
	tb.Helper()
	create := postgrestest.Create
	if onDemand {
		create = postgrestest.CreateOnDemand
	}
	d := create(tb)
	i.AppURL = d.AppURL
	var err error
	if i.DB, err = postgres.Open(tb.Context(), postgres.Config{URL: d.AppURL, Generation: i.generation, Log: slog.New(slog.DiscardHandler)}); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(i.DB.Close)
	if i.Owner, err = pgxpool.New(tb.Context(), d.OwnerURL); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(i.Owner.Close)
	i.Index, err = milvus.Open(tb.Context(), milvus.Config{
		Address: i.Milvus.Addr, Username: i.Milvus.User, Password: i.Milvus.Password, Dimensions: dimensions,
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = i.Index.Close() })
	tb.Cleanup(func() {
		inside, err := milvustest.Connect(context.Background(), i.Milvus)
		if err != nil {
			tb.Error(err)
			return
		}
		defer func() { _ = inside.Close() }()
		if err := milvustest.Drop(context.Background(), inside, i.Prefix()); err != nil {
			tb.Error(err)
		}
	})
}

// Prefix returns the common prefix of the installation's collections.
func (i *Installation) Prefix() string { return "mnemo_" + i.generation.Model + "_" }

// Tenant returns a Tenant with the given users, without creating it.
func (i *Installation) Tenant(name string, users ...string) *v1alpha1.Tenant {
	t := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: i.Namespace, Name: name}}
	for _, u := range users {
		t.Spec.Users = append(t.Spec.Users, v1alpha1.TenantUser{Name: u, TokenGeneration: 1})
	}
	return t
}

// MustCreate creates an object.
func (i *Installation) MustCreate(tb testing.TB, o client.Object) {
	tb.Helper()
	if err := i.Create(tb.Context(), o); err != nil {
		tb.Fatalf("create %s: %v", o.GetName(), err)
	}
}

// MustPatch merges a patch, as JSON, into a Tenant.
func (i *Installation) MustPatch(tb testing.TB, tenant, patch string) {
	tb.Helper()
	if err := i.Patch(tb.Context(), i.Tenant(tenant), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		tb.Fatalf("patch Tenant: %v", err)
	}
}

// Token returns the token in a user's Secret, or "" if there is none.
func (i *Installation) Token(tb testing.TB, tenant, user string) string {
	tb.Helper()
	return i.secret(tb, tenant, user, v1alpha1.SecretToken)
}

// Password returns the password in a user's Secret, or "" if there is none.
func (i *Installation) Password(tb testing.TB, tenant, user string) string {
	tb.Helper()
	return i.secret(tb, tenant, user, v1alpha1.SecretPassword)
}

func (i *Installation) secret(tb testing.TB, tenant, user, key string) string {
	tb.Helper()
	secret := &corev1.Secret{}
	of := client.ObjectKey{Namespace: i.Namespace, Name: tenant + "-" + user + "-access"}
	if err := client.IgnoreNotFound(i.Get(tb.Context(), of, secret)); err != nil {
		tb.Fatalf("get Secret: %v", err)
	}
	return string(secret.Data[key])
}
