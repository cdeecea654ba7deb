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

// doomed is a Tenant with data, about to be deleted.
type doomed struct {
	*live
	key    types.NamespacedName
	uid    types.UID
	policy v1alpha1.DeletionPolicy
	token  string
	before tenant.Record
}

// TestDeletionMatrix holds each cell of the table in docs/tenant-spec.md.
func TestDeletionMatrix(t *testing.T) { //nolint:paralleltest // the operator's metrics are the process's
	situations := map[string]func(*testing.T, *doomed){
		"operator up": func(t *testing.T, d *doomed) {
			d.delete(t)
			d.expectLetGo(t)
		},
		"operator gone":    deleteWithoutOperator,
		"Milvus away":      deleteWithoutMilvus,
		"PostgreSQL away":  deleteWithoutPostgres,
		"namespace delete": deleteNamespace,
	}
	l := newLive(t, 2*len(situations))
	l.operate(quickSweeps)
	next := 0
	for _, policy := range []v1alpha1.DeletionPolicy{v1alpha1.Retain, v1alpha1.Delete} {
		for name, situation := range situations {
			key := types.NamespacedName{Namespace: l.namespaces[next], Name: "acme"}
			next++
			t.Run(string(policy)+", "+name, func(t *testing.T) { situation(t, l.doom(t, key, policy)) })
		}
	}
}

// quickSweeps lets a test see what takes a day by default.
var quickSweeps = controllers.Config{
	Resync: time.Hour, Poll: 100 * time.Millisecond, Sweep: 200 * time.Millisecond, OrphanGrace: time.Second,
}

func (l *live) doom(t *testing.T, key types.NamespacedName, policy v1alpha1.DeletionPolicy) *doomed {
	t.Helper()
	d := &doomed{live: l, key: key, policy: policy}
	l.apply(t, key, fmt.Sprintf(`{"deletionPolicy":%q,"users":[{"name":"alice"}],"quota":{`+roomy+`}}`, policy))
	took(t, "Ready", func() bool { return meta.IsStatusConditionTrue(d.tenant(t).Status.Conditions, v1alpha1.Ready) })
	d.uid, d.token = d.tenant(t).UID, l.token(t, key, "alice")
	if status := l.remember(t, 0, d.token, "2026-05-01 The spare key is under the stone."); status != http.StatusOK {
		t.Fatalf("store a memory: %d", status)
	}
	d.before = l.record(t, d.uid)
	return d
}

func (d *doomed) tenant(t *testing.T) *v1alpha1.Tenant {
	t.Helper()
	return (&world{Client: d.Client, ns: d.key.Namespace}).tenant(t)
}

func (d *doomed) delete(t *testing.T) {
	t.Helper()
	tn := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: d.key.Namespace, Name: d.key.Name}}
	if err := d.Delete(t.Context(), tn); err != nil {
		t.Fatalf("delete Tenant: %v", err)
	}
}

func (d *doomed) isGone(t *testing.T) bool {
	t.Helper()
	return isGone(t, d.Client, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: d.key.Namespace, Name: d.key.Name}})
}

// expectLetGo waits until Tenant, Secret and access are gone, and the data is
// kept or purged as the policy says.
func (d *doomed) expectLetGo(t *testing.T) {
	t.Helper()
	took(t, "the Tenant is gone", func() bool { return d.isGone(t) })
	took(t, "the Secret is gone", func() bool { return d.live.token(t, d.key, "alice") == "" })
	took(t, "the token is dead", func() bool { return d.answers(t, d.token, http.StatusUnauthorized) })
	if d.policy == v1alpha1.Retain {
		now := d.record(t, d.uid)
		if now.State != tenant.Retained || now.Usage != d.before.Usage || !d.hasPartition(t, d.before) {
			t.Errorf("what is kept is %+v, want all of %+v, and the partition", now, d.before)
		}
		return
	}
	took(t, "rows and partition are gone", func() bool {
		return d.record(t, d.uid) == tenant.Record{} && !d.hasPartition(t, d.before)
	})
}

// expectHeld waits until the Tenant says what holds its deletion.
func (d *doomed) expectHeld(t *testing.T) {
	t.Helper()
	took(t, "the Tenant says what holds it", func() bool {
		c := meta.FindStatusCondition(d.tenant(t).Status.Conditions, v1alpha1.Ready)
		return c != nil && c.Reason == v1alpha1.ReasonUnavailable &&
			strings.Contains(c.Message, "deletion is blocked") && strings.Contains(c.Message, "kubectl -n "+d.key.Namespace)
	})
}

func deleteWithoutOperator(t *testing.T, d *doomed) {
	d.stop()
	d.delete(t)
	if d.isGone(t) || !d.answers(t, d.token, http.StatusOK) {
		t.Error("without an operator the Tenant is to wait, and its data path to go on")
	}
	// What `helm uninstall` with uninstall.releaseTenants runs; no Deployment is there to be stopped.
	err := controllers.Uninstall(t.Context(), testkit.KubeConfig(t), controllers.UninstallConfig{
		Namespaces: []string{d.key.Namespace}, Release: true, Operator: "mnemo-system/none", Logger: quiet,
	})
	if err != nil {
		t.Fatalf("release: %v", err)
	}
	took(t, "the released Tenant is gone", func() bool { return d.isGone(t) })
	if !d.answers(t, d.token, http.StatusOK) {
		t.Error("the token is dead though nobody revoked it")
	}
	d.operate(quickSweeps) // one that is installed again
	d.expectLetGo(t)
}

func deleteWithoutMilvus(t *testing.T, d *doomed) {
	d.mv.Close()
	d.delete(t)
	if d.policy == v1alpha1.Delete {
		d.expectHeld(t)
		if !d.answers(t, d.token, http.StatusUnauthorized) {
			t.Error("the token works while the deletion waits")
		}
		took(t, "the rows are gone", func() bool { return d.record(t, d.uid) == tenant.Record{} })
		d.mv.Open(t)
	}
	d.expectLetGo(t)
	if d.policy == v1alpha1.Retain {
		d.mv.Open(t)
	}
}

func deleteWithoutPostgres(t *testing.T, d *doomed) {
	d.pg.Close()
	d.served.Close()
	d.delete(t)
	d.expectHeld(t)
	if !d.answers(t, d.token, http.StatusServiceUnavailable) {
		t.Error("the data path answers without PostgreSQL")
	}
	d.served.Open(t)
	took(t, "the data path is there again for a token nobody could revoke", func() bool { return d.answers(t, d.token, http.StatusOK) })
	d.pg.Open(t)
	d.expectLetGo(t)
}

func deleteNamespace(t *testing.T, d *doomed) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.key.Namespace}}
	if err := d.Delete(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	d.expectLetGo(t)
	took(t, "the namespace is gone", func() bool { return isGone(t, d.Client, ns) })
}
