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
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/milvus/milvustest"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
	"github.com/mnemo-dev/mnemo/test/installation"
)

// stored is a row of tenants with its related rows.
type stored struct {
	ID                    tenant.ID
	Resource, Name        string
	State, Policy         string
	Memories              int64
	Users                 []string
	Collection, Partition string
	Shared, Filling       bool
	Tokens                int64 // that are valid
}

// problems compares the Tenants with their Secrets, PostgreSQL and Milvus. It returns the
// differences, or "". Jobs that drop unused locations run without their delay.
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
	there, err := locations(ctx, i)
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
			out = append(out, t.Name+" has no row in PostgreSQL")
			continue
		}
		expected[placement.Location{Collection: row.Collection, Partition: row.Partition, Shared: row.Shared}] = true
		out = append(out, compare(ctx, i, t, row, owned)...)
	}
	for _, row := range rows {
		out = append(out, fmt.Sprintf("row without a Tenant: %+v", row))
	}
	for name := range owned {
		out = append(out, "Secret without a user: "+name)
	}
	for _, p := range there {
		if !expected[p] {
			kind := "partition"
			if p.Shared {
				kind = "key"
			}
			out = append(out, fmt.Sprintf("%s without a tenant: %+v", kind, p))
		}
		delete(expected, p)
	}
	for p := range expected {
		if !p.Shared { // an empty key has no entries that could be listed
			out = append(out, fmt.Sprintf("missing partition: %+v", p))
		}
	}
	return strings.Join(out, "; ")
}

func rowsOf(ctx context.Context, i *installation.Installation) (map[string]stored, error) {
	rows, err := i.Owner.Query(ctx, `select t.id::text, t.resource::text, t.name, t.state, t.deletion_policy, q.memories,
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

// compare compares a Tenant with its row and Secrets, and removes the Secrets from owned.
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
			differs("Secret %s has a different owner", name)
		}
		who, err := i.DB.Identify(ctx, tenant.HashSecret(string(secret.Data[v1alpha1.SecretToken])))
		if err != nil || who.UserName != u.Name || who.Tenant != row.ID { // not the UID of a Tenant that adopted what an earlier one of its name left
			differs("the token of user %s belongs to %q (%v)", u.Name, who.UserName, err)
		}
	}
	if users := slices.Sorted(maps.Keys(names)); !slices.Equal(users, row.Users) {
		differs("users %v are stored as %v", users, row.Users)
	}
	if row.Tokens != int64(len(names)) {
		differs("%d tokens are valid, but there are %d users", row.Tokens, len(names))
	}
	if m := t.Spec.Quota.Memories; m != nil && *m != row.Memories {
		differs("quota %d is stored as %d", *m, row.Memories)
	}
	if row.Shared != (t.Spec.Isolation == v1alpha1.Shared) || row.Filling {
		differs("isolation %s is stored as shared %t, filling %t", t.Spec.Isolation, row.Shared, row.Filling)
	}
	return out
}

// strayUnits compares the units of each tenant with the entries in its placement.
func strayUnits(tb testing.TB, i *installation.Installation) string {
	tb.Helper()
	rows, err := i.Owner.Query(tb.Context(), `select t.id::text, p.collection, p.partition, p.shared,
		array(select id from units u where u.tenant_id = t.id and u.active order by id)
		from tenants t join placements p on p.tenant_id = t.id`)
	if err != nil {
		return err.Error()
	}
	type placementRow struct {
		Tenant                tenant.ID
		Collection, Partition string
		Shared                bool
		Units                 []retrieve.UnitID
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[placementRow])
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, p := range list {
		at := placement.Location{Collection: p.Collection, Partition: p.Partition, Shared: p.Shared}
		there, err := i.Index.List(tb.Context(), p.Tenant, at, 0, 10_000)
		if slices.Sort(there); err != nil || !slices.Equal(there, p.Units) {
			out = append(out, fmt.Sprintf("units %v, but %+v contains %v (%v)", p.Units, at, there, err))
		}
	}
	return strings.Join(out, "; ")
}

// locations lists the locations in Milvus. It first runs the jobs that drop unused locations,
// unless jobs that could still write to them are pending.
func locations(ctx context.Context, i *installation.Installation) ([]placement.Location, error) {
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

// seesOrphans checks that problems detects every kind of orphan.
func seesOrphans(t *testing.T, i *installation.Installation) {
	t.Helper()
	for what, place := range map[string]func(){
		"Secret without a user": func() {
			i.MustCreate(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: i.Namespace, Name: "t0-nobody-access"}})
		},
		"partition without a tenant": func() {
			stray := placement.Location{Collection: i.Prefix() + "32_1", Partition: "stray"}
			if _, err := placement.WaitLoaded(i.Index).Ensure(t.Context(), placement.Placement{Location: stray}); err != nil {
				t.Fatal(err)
			}
		},
		"key without a tenant": func() {
			stray := placement.Location{Collection: i.Prefix() + "32_shared_1", Partition: "stray", Shared: true}
			if _, err := placement.WaitLoaded(i.Index).Ensure(t.Context(), placement.Placement{Location: stray}); err != nil {
				t.Fatal(err)
			}
			if err := i.Index.Upsert(t.Context(), "stray", stray, []indexing.Entry{{ID: 1 << 40, User: 1, Kind: retrieve.Memory, Vector: make([]float32, 32)}}); err != nil {
				t.Fatal(err)
			}
		},
		"row without a Tenant": func() {
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
			t.Errorf("problems does not report %q: %q", what, found)
		}
	}
}
