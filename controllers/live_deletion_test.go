package controllers_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// deletion is a Tenant with data that a test deletes.
type deletion struct {
	*live
	key    types.NamespacedName
	uid    types.UID
	policy v1alpha1.DeletionPolicy
	token  string
	before tenant.Record
}

// TestDeletionMatrix tests each cell of the table in docs/tenant-spec.md.
func TestDeletionMatrix(t *testing.T) { //nolint:paralleltest // the operator's metrics are the process's
	situations := map[string]func(*testing.T, *deletion){
		"operator running": func(t *testing.T, d *deletion) {
			d.delete(t)
			d.expectFinalized(t)
		},
		"operator stopped":       deleteWithoutOperator,
		"Milvus unavailable":     deleteWithoutMilvus,
		"PostgreSQL unavailable": deleteWithoutPostgres,
		"namespace deleted":      deleteNamespace,
	}
	l := newLive(t, 2*len(situations))
	l.operate(quickSweeps)
	next := 0
	for _, policy := range []v1alpha1.DeletionPolicy{v1alpha1.Retain, v1alpha1.Delete} {
		for name, situation := range situations {
			key := types.NamespacedName{Namespace: l.namespaces[next], Name: "acme"}
			next++
			t.Run(string(policy)+", "+name, func(t *testing.T) { situation(t, l.tenantWithData(t, key, policy)) })
		}
	}
}

// quickSweeps shortens intervals that are up to a day by default.
var quickSweeps = controllers.Config{
	Resync: time.Hour, Poll: 100 * time.Millisecond, Sweep: 200 * time.Millisecond, OrphanGrace: time.Second,
}

func (l *live) tenantWithData(t *testing.T, key types.NamespacedName, policy v1alpha1.DeletionPolicy) *deletion {
	t.Helper()
	d := &deletion{live: l, key: key, policy: policy}
	l.apply(t, key, fmt.Sprintf(`{"deletionPolicy":%q,"users":[{"name":"alice"}],"quota":{`+unlimitedRate+`}}`, policy))
	waitFor(t, "Ready", func() bool { return meta.IsStatusConditionTrue(d.tenant(t).Status.Conditions, v1alpha1.Ready) })
	d.uid, d.token = d.tenant(t).UID, l.token(t, key, "alice")
	if status := l.remember(t, 0, d.token, "2026-05-01 The spare key is under the stone."); status != http.StatusOK {
		t.Fatalf("store a memory: %d", status)
	}
	d.before = l.record(t, d.uid)
	return d
}

func (d *deletion) tenant(t *testing.T) *v1alpha1.Tenant {
	t.Helper()
	return (&env{Client: d.Client, ns: d.key.Namespace}).tenant(t)
}

func (d *deletion) delete(t *testing.T) {
	t.Helper()
	tn := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: d.key.Namespace, Name: d.key.Name}}
	if err := d.Delete(t.Context(), tn); err != nil {
		t.Fatalf("delete Tenant: %v", err)
	}
}

func (d *deletion) isGone(t *testing.T) bool {
	t.Helper()
	return isGone(t, d.Client, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: d.key.Namespace, Name: d.key.Name}})
}

// expectFinalized waits until Tenant, Secret and access are gone and the data is
// retained or purged according to the policy.
func (d *deletion) expectFinalized(t *testing.T) {
	t.Helper()
	waitFor(t, "Tenant removed", func() bool { return d.isGone(t) })
	waitFor(t, "Secret removed", func() bool { return d.live.token(t, d.key, "alice") == "" })
	waitFor(t, "token revoked", func() bool { return d.answers(t, d.token, http.StatusUnauthorized) })
	if d.policy == v1alpha1.Retain {
		now := d.record(t, d.uid)
		expectEqual(t, "state", now.State, tenant.Retained)
		expectEqual(t, "retained usage", now.Usage, d.before.Usage)
		if !d.hasPartition(t, d.before) {
			t.Error("the partition was dropped, want it retained")
		}
		return
	}
	waitFor(t, "rows and partition purged", func() bool {
		return d.record(t, d.uid) == tenant.Record{} && !d.hasPartition(t, d.before)
	})
}

// expectBlocked waits until the Tenant reports what blocks its deletion.
func (d *deletion) expectBlocked(t *testing.T) {
	t.Helper()
	waitFor(t, "deletion reported as blocked", func() bool {
		c := meta.FindStatusCondition(d.tenant(t).Status.Conditions, v1alpha1.Ready)
		return c != nil && c.Reason == v1alpha1.ReasonUnavailable &&
			strings.Contains(c.Message, "deletion is blocked") && strings.Contains(c.Message, "kubectl -n "+d.key.Namespace)
	})
}

func deleteWithoutOperator(t *testing.T, d *deletion) {
	d.stop()
	d.delete(t)
	if d.isGone(t) {
		t.Error("the Tenant was removed without an operator")
	}
	if !d.answers(t, d.token, http.StatusOK) {
		t.Error("the data path does not work without an operator")
	}
	// As `helm uninstall` with uninstall.releaseTenants does; there is no Deployment to stop.
	err := controllers.Uninstall(t.Context(), testkit.KubeConfig(t), controllers.UninstallConfig{
		Namespaces: []string{d.key.Namespace}, Release: true, Operator: "mnemo-system/none", Logger: quiet,
	})
	if err != nil {
		t.Fatalf("release: %v", err)
	}
	waitFor(t, "released Tenant removed", func() bool { return d.isGone(t) })
	if !d.answers(t, d.token, http.StatusOK) {
		t.Error("the token does not work although nobody revoked it")
	}
	d.operate(quickSweeps) // installed again
	d.expectFinalized(t)
}

func deleteWithoutMilvus(t *testing.T, d *deletion) {
	d.mv.Close()
	d.delete(t)
	if d.policy == v1alpha1.Delete {
		d.expectBlocked(t)
		if !d.answers(t, d.token, http.StatusUnauthorized) {
			t.Error("the token works while the deletion is blocked")
		}
		waitFor(t, "rows purged", func() bool { return d.record(t, d.uid).Usage == tenant.Usage{} })
		d.mv.Open(t)
	}
	d.expectFinalized(t)
	if d.policy == v1alpha1.Retain {
		d.mv.Open(t)
	}
}

func deleteWithoutPostgres(t *testing.T, d *deletion) {
	d.pg.Close()
	d.served.Close()
	d.delete(t)
	d.expectBlocked(t)
	if !d.answers(t, d.token, http.StatusServiceUnavailable) {
		t.Error("the data path works without PostgreSQL")
	}
	d.served.Open(t)
	waitFor(t, "data path available again for a token that could not be revoked", func() bool { return d.answers(t, d.token, http.StatusOK) })
	d.pg.Open(t)
	d.expectFinalized(t)
}

func deleteNamespace(t *testing.T, d *deletion) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.key.Namespace}}
	if err := d.Delete(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	d.expectFinalized(t)
	waitFor(t, "namespace removed", func() bool { return isGone(t, d.Client, ns) })
}
