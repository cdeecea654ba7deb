package fleet_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/jobs"
	"github.com/mnemo-dev/mnemo/internal/milvus"
	"github.com/mnemo-dev/mnemo/internal/milvus/milvustest"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// patience is how long a test waits for what has to come about.
const patience = 3 * time.Minute

// mnemo is the program under test.
var mnemo string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "mnemo-fleet-")
	if err == nil {
		mnemo = filepath.Join(dir, "mnemo")
		var out []byte
		if out, err = exec.Command("go", "build", "-o", mnemo, "../../cmd/mnemo").CombinedOutput(); err != nil {
			err = fmt.Errorf("build mnemo: %w\n%s", err, out)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	controllers.SetLogger(slog.New(slog.DiscardHandler))
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// fleet is a namespace of Tenants with stores of its own.
type fleet struct {
	client.Client // the administrator's, uncached
	ns            string
	db            *postgres.DB
	owner         *pgxpool.Pool
	index         *milvus.Index
	generation    postgres.Generation
	env           []string // of the operator
}

// nothing embeds nothing: no test here stores texts.
type nothing struct{ postgres.Generation }

func (nothing) Embed(context.Context, []string) ([][]float32, error) { panic("no texts here") }
func (n nothing) Model() string                                      { return n.Generation.Model }
func (n nothing) Dimensions() int                                    { return n.Generation.Dimensions }

func newFleet(tb testing.TB) *fleet {
	tb.Helper()
	d, addr := postgrestest.Create(tb), testkit.Milvus(tb)
	f := &fleet{generation: postgres.Generation{Model: "fleet" + strings.ToLower(rand.Text()), Dimensions: 16}}
	var err error
	if f.db, err = postgres.Open(tb.Context(), postgres.Config{URL: d.AppURL, Generation: f.generation, Log: slog.New(slog.DiscardHandler)}); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(f.db.Close)
	if f.owner, err = pgxpool.New(tb.Context(), d.OwnerURL); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(f.owner.Close)
	if f.index, err = milvus.Open(tb.Context(), milvus.Config{Address: addr.Addr, Username: addr.User, Password: addr.Password, Dimensions: 16}); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = f.index.Close() })
	inside := milvustest.Open(tb)
	tb.Cleanup(func() {
		if err := milvustest.Drop(context.Background(), inside, f.prefix()); err != nil {
			tb.Error(err)
		}
	})
	f.joinCluster(tb)
	f.work(tb)
	f.env = []string{
		"KUBECONFIG=" + f.kubeconfig(tb), "DATABASE_URL=" + d.AppURL,
		"MILVUS_ADDRESS=" + addr.Addr, "MILVUS_USERNAME=" + addr.User, "MILVUS_PASSWORD=" + addr.Password,
		"MNEMO_EMBEDDER=openai", "MNEMO_EMBEDDINGS_MODEL=" + f.generation.Model, "MNEMO_EMBEDDINGS_DIMENSIONS=16",
		"MNEMO_URL=https://mnemo.test", "MNEMO_WATCH_NAMESPACES=" + f.ns, "MNEMO_LEADER_ELECTION_NAMESPACE=" + f.ns,
	}
	return f
}

// prefix is how the fleet's collections begin.
func (f *fleet) prefix() string { return "mnemo_" + f.generation.Model + "_" }

// work runs the jobs, which an API server would.
func (f *fleet) work(tb testing.TB) {
	tb.Helper()
	log := slog.New(slog.DiscardHandler)
	config, err := jobs.Config(retrieve.NewIndexer(f.db, f.index, nothing{f.generation}), f.db, nil, log)
	if err != nil {
		tb.Fatal(err)
	}
	workers, err := f.db.Jobs(config)
	if err != nil {
		tb.Fatal(err)
	}
	if err := workers.Start(context.WithoutCancel(tb.Context())); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = workers.StopAndCancel(context.Background()) })
}

// joinCluster makes the namespace with the operator's account and exactly the
// rights of config/rbac-namespaced.
func (f *fleet) joinCluster(tb testing.TB) {
	tb.Helper()
	config := testkit.KubeConfig(tb)
	config.QPS = -1
	scheme, err := controllers.NewScheme()
	if err != nil {
		tb.Fatal(err)
	}
	if f.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		tb.Fatal(err)
	}
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{"../../config/crd/bases"}, ErrorIfPathMissing: true}); err != nil {
		tb.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "fleet-"}}
	f.create(tb, ns)
	f.ns = ns.Name
	tb.Cleanup(func() { f.leave(tb, ns) })
	f.create(tb, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: "mnemo-operator"}})
	for _, folder := range []string{"operator", "tenants"} {
		out, err := exec.CommandContext(tb.Context(), testkit.Kubectl(tb), "kustomize", "../../config/rbac-namespaced/"+folder).Output()
		if err != nil {
			tb.Fatalf("kubectl kustomize: %v", err)
		}
		for docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(out), 4096); ; {
			var role rbacv1.Role // a cluster's has the same fields
			if err := docs.Decode(&role); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				tb.Fatal(err)
			}
			f.grant(tb, folder, role)
		}
	}
}

func (f *fleet) grant(tb testing.TB, folder string, role rbacv1.Role) {
	tb.Helper()
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "mnemo-operator", Namespace: f.ns}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role.Kind, Name: f.ns + "-" + folder}
	meta := metav1.ObjectMeta{Name: ref.Name}
	switch role.Kind {
	case "Role":
		meta.Namespace = f.ns
		f.create(tb, &rbacv1.Role{ObjectMeta: meta, Rules: role.Rules})
		f.create(tb, &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref})
	case "ClusterRole":
		cluster := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: role.Rules}
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref}
		f.create(tb, cluster)
		f.create(tb, binding)
		tb.Cleanup(func() {
			_ = f.Delete(context.Background(), binding)
			_ = f.Delete(context.Background(), cluster)
		})
	}
}

func (f *fleet) create(tb testing.TB, o client.Object) {
	tb.Helper()
	if err := f.Create(tb.Context(), o); err != nil {
		tb.Fatalf("create %s: %v", o.GetName(), err)
	}
}

// kubeconfig writes one for the operator's account, with a token of its own.
func (f *fleet) kubeconfig(tb testing.TB) string {
	tb.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: "mnemo-operator"}}
	token := &authenticationv1.TokenRequest{}
	if err := f.SubResource("token").Create(tb.Context(), account, token); err != nil {
		tb.Fatalf("request a token: %v", err)
	}
	config, err := clientcmd.LoadFromFile(testkit.KubeConfigFile(tb))
	if err != nil {
		tb.Fatal(err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	path := filepath.Join(tb.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		tb.Fatal(err)
	}
	return path
}

// operator is a running process.
type operator struct {
	cmd     *exec.Cmd
	log     *bytes.Buffer
	metrics string
	ended   chan struct{}
}

// start starts `mnemo operator`; it ends with the test at the latest.
func (f *fleet) start(tb testing.TB, env ...string) *operator {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	o := &operator{log: &bytes.Buffer{}, metrics: "http://" + address + "/metrics", ended: make(chan struct{})}
	o.cmd = exec.Command(mnemo, "operator")
	o.cmd.Env = append(append(os.Environ(), f.env...), append(env, "MNEMO_METRICS_LISTEN="+address, "MNEMO_HEALTH_LISTEN=0")...)
	o.cmd.Stdout, o.cmd.Stderr = o.log, o.log
	if err := o.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	go func() {
		_ = o.cmd.Wait()
		close(o.ended)
	}()
	tb.Cleanup(o.kill)
	return o
}

// kill ends the process as a crash does, and returns when it is gone.
func (o *operator) kill() {
	_ = o.cmd.Process.Kill()
	<-o.ended
}

// counted sums a metric's series whose labels contain the text, 0 when the
// process does not answer.
func (o *operator) counted(tb testing.TB, name, labels string) (sum float64) {
	tb.Helper()
	res, err := http.Get(o.metrics)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		series, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if found, _, _ := strings.Cut(series, "{"); ok && found == name && strings.Contains(series, labels) {
			var n float64
			if _, err := fmt.Sscan(value, &n); err == nil {
				sum += n
			}
		}
	}
	return sum
}

// eventually waits until check has no more to say.
func eventually(tb testing.TB, within time.Duration, check func() string) {
	tb.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for started := time.Now(); ; <-tick.C {
		problem := check()
		if problem == "" {
			return
		}
		if time.Since(started) > within {
			tb.Fatalf("not in %s: %s", within, problem)
		}
	}
}

// leave lets go of the Tenants and deletes the namespace.
func (f *fleet) leave(tb testing.TB, ns *corev1.Namespace) {
	tb.Helper()
	ctx := context.Background()
	var list v1alpha1.TenantList
	if err := f.List(ctx, &list, client.InNamespace(f.ns)); err != nil {
		tb.Error(err)
	}
	for i := range list.Items {
		before := list.Items[i].DeepCopy()
		list.Items[i].Finalizers = nil
		_ = f.Patch(ctx, &list.Items[i], client.MergeFrom(before))
	}
	if err := f.Delete(ctx, ns); err != nil {
		tb.Error(err)
	}
}
