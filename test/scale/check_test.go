package scale_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/milvus/milvustest"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
	"github.com/mnemo-dev/mnemo/test/installation"
)

// stored is a row of tenants with what belongs to it.
type stored struct {
	Resource, Name        string
	State, Policy         string
	Memories              int64
	Users                 []string
	Collection, Partition string
	Shared, Filling       bool
	Tokens                int64 // that are valid
}

// problems compares the Tenants with their Secrets, PostgreSQL and Milvus, and
// says where they differ; "" when nowhere. Places that were left are emptied a while later, for
// readers of the past: that is done now.
func problems(tb testing.TB, i *installation.Installation) string {
	tb.Helper()
	ctx := tb.Context()
	var tenants v1alpha1.TenantList
	var secrets corev1.SecretList
	if err := i.List(ctx, &tenants, client.InNamespace(i.Namespace)); err != nil {
		return err.Error()
	}
	if err := i.List(ctx, &secrets, client.InNamespace(i.Namespace)); err != nil {
		return err.Error()
	}
	rows, err := rowsOf(ctx, i)
	if err != nil {
		return err.Error()
	}
	there, err := places(ctx, i)
	if err != nil {
		return err.Error()
	}
	var out []string
	owned := map[string]corev1.Secret{}
	for n := range secrets.Items {
		owned[secrets.Items[n].Name] = secrets.Items[n]
	}
	expected := map[placement.Location]bool{}
	for n := range tenants.Items {
		t := &tenants.Items[n]
		row, ok := rows[string(t.UID)]
		delete(rows, string(t.UID))
		if !ok {
			out = append(out, t.Name+" has no row")
			continue
		}
		expected[placement.Location{Collection: row.Collection, Partition: row.Partition, Shared: row.Shared}] = true
		out = append(out, compare(ctx, i, t, row, owned)...)
	}
	for _, row := range rows {
		out = append(out, fmt.Sprintf("a row of no Tenant: %+v", row))
	}
	for name := range owned {
		out = append(out, "a Secret of no user: "+name)
	}
	for _, p := range there {
		if !expected[p] {
			kind := "partition"
			if p.Shared {
				kind = "key"
			}
			out = append(out, fmt.Sprintf("a %s of no tenant: %+v", kind, p))
		}
		delete(expected, p)
	}
	for p := range expected {
		if !p.Shared { // an empty one holds nothing that could be seen
			out = append(out, fmt.Sprintf("a partition that is missing: %+v", p))
		}
	}
	return strings.Join(out, "; ")
}

func rowsOf(ctx context.Context, i *installation.Installation) (map[string]stored, error) {
	rows, err := i.Owner.Query(ctx, `select t.resource::text, t.name, t.state, t.deletion_policy, q.memories,
		array(select name from users u where u.tenant_id = t.id and u.active order by name),
		coalesce(p.collection, ''), coalesce(p.partition, ''), coalesce(p.shared, false),
		exists (select from placement_migrations m where m.tenant_id = t.id),
		(select count(*) from tokens k where k.tenant_id = t.id and (k.expires_at is null or k.expires_at > now()))
		from tenants t join quotas q on q.tenant_id = t.id left join placements p on p.tenant_id = t.id`)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[stored])
	out := map[string]stored{}
	for _, row := range list {
		out[row.Resource] = row
	}
	return out, err
}

// compare takes the Tenant's Secrets out of owned.
func compare(ctx context.Context, i *installation.Installation, t *v1alpha1.Tenant, row stored, owned map[string]corev1.Secret) (out []string) {
	differs := func(format string, args ...any) { out = append(out, t.Name+": "+fmt.Sprintf(format, args...)) }
	if !t.DeletionTimestamp.IsZero() {
		differs("is still being deleted")
	}
	if t.Status.ObservedGeneration != t.Generation || !meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.Ready) {
		differs("is not Ready: %+v", t.Status.Conditions)
	}
	names := map[string]bool{}
	for _, u := range t.Spec.Users {
		names[u.Name] = true
		name := t.Name + "-" + u.Name + "-access"
		secret, ok := owned[name]
		delete(owned, name)
		switch {
		case !ok:
			differs("user %s has no Secret", u.Name)
			continue
		case !metav1.IsControlledBy(&secret, t):
			differs("Secret %s is another's", name)
		}
		who, err := i.DB.Identify(ctx, tenant.HashSecret(string(secret.Data[v1alpha1.SecretToken])))
		if err != nil || who.UserName != u.Name || who.Tenant != tenant.ID(t.UID) {
			differs("the token of %s is %s's (%v)", u.Name, who.UserName, err)
		}
	}
	if users := slices.Sorted(maps.Keys(names)); !slices.Equal(users, row.Users) {
		differs("users %v are stored as %v", users, row.Users)
	}
	if row.Tokens != int64(len(names)) {
		differs("%d tokens are valid of %d users", row.Tokens, len(names))
	}
	if m := t.Spec.Quota.Memories; m != nil && *m != row.Memories {
		differs("quota %d is stored as %d", *m, row.Memories)
	}
	if row.Shared != (t.Spec.Isolation == v1alpha1.Shared) || row.Filling {
		differs("isolation %s is stored as shared %t, filling %t", t.Spec.Isolation, row.Shared, row.Filling)
	}
	return out
}

// strayUnits compares the units of each tenant with what is in its place.
func strayUnits(tb testing.TB, i *installation.Installation) string {
	tb.Helper()
	rows, err := i.Owner.Query(tb.Context(), `select t.id::text, p.collection, p.partition, p.shared,
		array(select id from units u where u.tenant_id = t.id and u.active order by id)
		from tenants t join placements p on p.tenant_id = t.id`)
	if err != nil {
		return err.Error()
	}
	type place struct {
		Tenant                tenant.ID
		Collection, Partition string
		Shared                bool
		Units                 []retrieve.UnitID
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[place])
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, p := range list {
		at := placement.Location{Collection: p.Collection, Partition: p.Partition, Shared: p.Shared}
		there, err := i.Index.List(tb.Context(), p.Tenant, at, 0, 10_000)
		if slices.Sort(there); err != nil || !slices.Equal(there, p.Units) {
			out = append(out, fmt.Sprintf("units %v are in %+v as %v (%v)", p.Units, at, there, err))
		}
	}
	return strings.Join(out, "; ")
}

// places lists the installation's places in Milvus. No writer of the past is
// to come after the places that were left are emptied.
func places(ctx context.Context, i *installation.Installation) ([]placement.Location, error) {
	if _, err := i.Owner.Exec(ctx, `update river_job set scheduled_at = now(), state = 'available'
		where kind = 'placement.drop' and state = 'scheduled' and not exists
			(select from river_job where kind in ('index.sync', 'placement.migrate') and state in ('available', 'running', 'retryable'))`); err != nil {
		return nil, err
	}
	inside, err := milvustest.Connect(ctx, i.Milvus)
	if err != nil {
		return nil, err
	}
	defer inside.Close()
	return milvustest.Locations(ctx, inside, i.Prefix())
}

// seesOrphans shows that what the tests here end with can fail.
func seesOrphans(t *testing.T, i *installation.Installation) {
	t.Helper()
	for what, place := range map[string]func(){
		"a Secret of no user": func() {
			i.MustCreate(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: i.Namespace, Name: "t0-nobody-access"}})
		},
		"a partition of no tenant": func() {
			stray := placement.Location{Collection: i.Prefix() + "32_1", Partition: "stray"}
			if _, err := placement.WaitLoaded(i.Index).Ensure(t.Context(), placement.Placement{Location: stray}); err != nil {
				t.Fatal(err)
			}
		},
		"a key of no tenant": func() {
			stray := placement.Location{Collection: i.Prefix() + "32_shared_1", Partition: "stray", Shared: true}
			if _, err := placement.WaitLoaded(i.Index).Ensure(t.Context(), placement.Placement{Location: stray}); err != nil {
				t.Fatal(err)
			}
			if err := i.Index.Upsert(t.Context(), "stray", stray, []retrieve.Entry{{ID: 1 << 40, User: 1, Kind: retrieve.Memory, Vector: make([]float32, 32)}}); err != nil {
				t.Fatal(err)
			}
		},
		"a row of no Tenant": func() {
			if _, err := i.DB.Apply(t.Context(), tenanttest.NewSpec()); err != nil {
				t.Fatal(err)
			}
		},
		"tokens are valid": func() {
			if _, err := i.Owner.Exec(t.Context(), "update tokens set expires_at = now()"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		place()
		if found := problems(t, i); !strings.Contains(found, what) {
			t.Errorf("the check does not see %s: %q", what, found)
		}
	}
}
