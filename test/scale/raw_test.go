package scale_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/milvus/milvustest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/test/installation"
)

const (
	// workers is the operator's default concurrency.
	workers = 4
	// perCollection is the number of partitions per collection.
	perCollection = 256
)

// raw makes the calls that are indispensable for each Tenant of an installation
// without an operator. It uses a plain client of each server, with the operator's
// account and the application's role, and the operator's concurrency. The calls are
//
//   - two writes of the Tenant: finalizer and status;
//   - a transaction with its rows (tenant, usage, quota, two users, placement), and
//     one with the partition's id;
//   - the partition, and for every 256th a collection with its index, loaded;
//   - for each user a transaction with token and password, and the Secret.
//
// They include no reads, locks, jobs, events or dry runs.
type raw struct {
	*installation.Installation
	kube   client.Client
	pool   *pgxpool.Pool
	milvus milvustest.Client

	collections sync.Map // of *sync.Once by name
	spent       [4]atomic.Int64
}

// The kinds of calls, as raw.spent counts them.
const (
	onTenant = iota
	onSecrets
	onSQL
	onPartitions
)

func newRaw(tb testing.TB) *raw {
	tb.Helper()
	r := &raw{Installation: installation.New(tb, installation.Options{})}
	config, err := clientcmd.BuildConfigFromFlags("", r.Kubeconfig)
	if err != nil {
		tb.Fatal(err)
	}
	config.QPS = -1
	scheme, err := controllers.NewScheme()
	if err != nil {
		tb.Fatal(err)
	}
	if r.kube, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		tb.Fatal(err)
	}
	if r.pool, err = pgxpool.New(tb.Context(), r.AppURL); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(r.pool.Close)
	r.milvus = milvustest.Open(tb)
	return r
}

// run makes the calls for all Tenants and returns how long they took.
func (r *raw) run(tb testing.TB, from, to int) time.Duration {
	tb.Helper()
	var list v1alpha1.TenantList
	if err := r.List(tb.Context(), &list, client.InNamespace(r.Namespace)); err != nil {
		tb.Fatal(err)
	}
	next := make(chan int)
	var wait sync.WaitGroup
	started := time.Now()
	for range workers {
		wait.Go(func() {
			for i := range next {
				if err := r.one(tb.Context(), i, &list.Items[i]); err != nil {
					tb.Errorf("raw calls for %s: %v", list.Items[i].Name, err)
				}
			}
		})
	}
	for i := from; i < to; i++ {
		next <- i
	}
	close(next)
	wait.Wait()
	return time.Since(started)
}

// timed calls do and adds its duration to the kind's.
func (r *raw) timed(kind int, do func() error) error {
	started := time.Now()
	err := do()
	r.spent[kind].Add(int64(time.Since(started)))
	return err
}

func (r *raw) one(ctx context.Context, i int, t *v1alpha1.Tenant) error {
	id, collection := string(t.UID), fmt.Sprint(r.Prefix(), "raw_", i/perCollection)
	partition := "p" + fmt.Sprint(i)
	users := make([]int64, len(t.Spec.Users))
	for _, step := range []struct {
		kind int
		do   func() error
	}{
		{onTenant, func() error {
			before := t.DeepCopy()
			controllerutil.AddFinalizer(t, v1alpha1.Finalizer)
			return r.kube.Patch(ctx, t, client.MergeFrom(before))
		}},
		{onSQL, func() error { return r.rows(ctx, id, t, collection, partition, users) }},
		{onPartitions, func() error { return r.partition(ctx, collection, partition) }},
		{onSQL, func() error {
			return r.tx(ctx, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, "update placements set partition_id = 1 where tenant_id = $1", id)
				return err
			})
		}},
	} {
		if err := r.timed(step.kind, step.do); err != nil {
			return err
		}
	}
	for n, user := range t.Spec.Users {
		token, err := tenant.NewToken(0, rand.Reader)
		if err != nil {
			return err
		}
		if err := r.timed(onSQL, func() error { return r.install(ctx, id, users[n], token) }); err != nil {
			return err
		}
		if err := r.timed(onSecrets, func() error { return r.publish(ctx, t, user.Name, token) }); err != nil {
			return err
		}
	}
	return r.timed(onTenant, func() error {
		before := t.DeepCopy()
		for _, name := range []string{v1alpha1.Synced, v1alpha1.IndexReady, v1alpha1.TokensReady, v1alpha1.Ready} {
			meta.SetStatusCondition(&t.Status.Conditions, metav1.Condition{
				Type: name, Status: metav1.ConditionTrue, Reason: name, Message: "as written by the operator", ObservedGeneration: t.Generation,
			})
		}
		t.Status.ID, t.Status.ObservedGeneration = id, t.Generation
		t.Status.Placement = &v1alpha1.TenantPlacement{Collection: collection, Partition: partition, Isolation: v1alpha1.Partition}
		t.Status.Usage = &v1alpha1.TenantUsage{
			Memories: v1alpha1.CountUsage{Hard: 10_000}, Conversations: v1alpha1.CountUsage{Hard: 500},
			Storage: v1alpha1.StorageUsage{Hard: resource.MustParse("10Gi")}, Users: v1alpha1.CountUsage{Used: 2, Hard: 50},
		}
		t.Status.UserCounts = &v1alpha1.UserCounts{Total: 2, Ready: 2}
		for _, u := range t.Spec.Users {
			t.Status.Users = append(t.Status.Users, v1alpha1.UserStatus{
				Name: u.Name, Secret: t.Name + "-" + u.Name + "-access", Fingerprint: "0123456789ab", TokenGeneration: 1, Issued: 1, ManagedBy: v1alpha1.ManagedByOperator,
			})
		}
		return r.kube.Status().Patch(ctx, t, client.MergeFrom(before))
	})
}

func (r *raw) tx(ctx context.Context, do func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, r.pool, do)
}

func (r *raw) rows(ctx context.Context, id string, t *v1alpha1.Tenant, collection, partition string, users []int64) error {
	return r.tx(ctx, func(tx pgx.Tx) error {
		for _, insert := range []struct {
			sql  string
			args []any
		}{
			{"insert into tenants (id, resource, cluster, namespace, name) values ($1, $1, 'raw', $2, $3)", []any{id, t.Namespace, t.Name}},
			{"insert into usage (tenant_id) values ($1)", []any{id}},
			{`insert into quotas (tenant_id, memories, conversations, storage, users, requests_per_minute, page_tokens, user_memories, user_conversations)
				values ($1, 10000, 500, 1, 50, 600, 25000, 1, 1)`, []any{id}},
			{"insert into placements (tenant_id, generation, collection, partition) values ($1, 'raw', $2, $3)", []any{id, collection, partition}},
		} {
			if _, err := tx.Exec(ctx, insert.sql, insert.args...); err != nil {
				return err
			}
		}
		for n, u := range t.Spec.Users {
			if err := tx.QueryRow(ctx, "insert into users (tenant_id, name) values ($1, $2) returning id", id, u.Name).Scan(&users[n]); err != nil {
				return err
			}
		}
		return nil
	})
}

// partition creates a partition, and its collection if it is the first one.
func (r *raw) partition(ctx context.Context, collection, partition string) (err error) {
	once, _ := r.collections.LoadOrStore(collection, &sync.Once{})
	once.(*sync.Once).Do(func() { err = milvustest.Collection(ctx, r.milvus, collection, 32) })
	if err != nil {
		return err
	}
	return r.milvus.CreatePartition(ctx, collection, partition)
}

func (r *raw) install(ctx context.Context, id string, user int64, token string) error {
	hash, password := tenant.HashSecret(token), tenant.HashSecret(uuid.NewString())
	return r.tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "insert into tokens (tenant_id, user_id, generation, hash, issuer) values ($1, $2, 1, $3, 'operator')", id, user, hash[:]); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "update users set password_hash = $3 where tenant_id = $1 and id = $2", id, user, password[:])
		return err
	})
}

func (r *raw) publish(ctx context.Context, t *v1alpha1.Tenant, user, token string) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: t.Name + "-" + user + "-access",
			Labels:      map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, v1alpha1.LabelTenant: t.Name, v1alpha1.LabelUser: user},
			Annotations: map[string]string{v1alpha1.AnnotationTokenGeneration: "1"},
		},
		Data: map[string][]byte{"token": []byte(token), "password": []byte(token), "url": []byte("https://mnemo.test")},
	}
	if err := controllerutil.SetControllerReference(t, secret, r.kube.Scheme()); err != nil {
		return err
	}
	return r.kube.Create(ctx, secret)
}

// all returns the duration of all calls, and an estimate without the calls on the
// Tenant, by the workers' share of time.
func (r *raw) all(took time.Duration) (all, withoutTenant time.Duration, shares string) {
	var sum int64
	for i := range r.spent {
		sum += r.spent[i].Load()
	}
	for i, name := range []string{"Tenant", "Secrets", "SQL", "partitions"} {
		shares += fmt.Sprintf(" %s %.0f%%", name, 100*float64(r.spent[i].Load())/float64(sum))
	}
	share := float64(sum-r.spent[onTenant].Load()) / float64(sum)
	return took, time.Duration(float64(took) * share), shares[1:]
}
