package controllers_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
)

var errNotConnected = fault.Wrap(fault.Unavailable, placement.ErrNotConnected, "not connected")

// newCell returns a Cell with the name of the namespace.
func (e *env) newCell() *v1alpha1.Cell {
	return &v1alpha1.Cell{ObjectMeta: metav1.ObjectMeta{Name: e.ns}, Spec: v1alpha1.CellSpec{
		Milvus: v1alpha1.CellMilvus{Address: "milvus.test:19530"}, Region: "eu", Capacity: v1alpha1.CellCapacity{Tenants: 7, Units: 9},
	}}
}

func (e *env) cell(t *testing.T) *v1alpha1.Cell {
	t.Helper()
	c := &v1alpha1.Cell{}
	if err := e.Get(t.Context(), client.ObjectKey{Name: e.ns}, c); err != nil {
		t.Fatalf("get cell: %v", err)
	}
	return c
}

// cellReason returns the reason of condition Ready of the Cell.
func (e *env) cellReason(t *testing.T) string {
	t.Helper()
	ready := meta.FindStatusCondition(e.cell(t).Status.Conditions, v1alpha1.Ready)
	if ready == nil {
		return ""
	}
	return ready.Reason
}

// setupCell returns an env with a Cell, and a function that reconciles it until nothing has to
// be repeated at once.
func setupCell(t *testing.T, change func(*v1alpha1.Cell)) (e *env, reconcile func()) {
	t.Helper()
	e, r := setupCellReconciler(t, nil, change)
	return e, func() { t.Helper(); e.reconcileCell(t, r) }
}

// setupCellReconciler returns an env with a Cell, and a reconciler. pinger is by default the store.
func setupCellReconciler(t *testing.T, pinger controllers.CellPinger, change func(*v1alpha1.Cell)) (*env, *controllers.CellReconciler) {
	t.Helper()
	e := setup(t)
	s := e.store.all()
	if pinger != nil {
		s.CellPinger = pinger
	}
	r := controllers.NewCellReconciler(e.Client, e.Client, controllers.Config{CellsSecret: types.NamespacedName{Namespace: e.ns, Name: "mnemo-cells"}}, s)
	c := e.newCell()
	if change != nil {
		change(c)
	}
	e.mustCreate(t, c)
	t.Cleanup(func() {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		ctx := context.Background() // the test's has ended
		if err := e.Patch(ctx, e.newCell(), patch); client.IgnoreNotFound(err) != nil {
			t.Errorf("release cell: %v", err)
		}
		if err := e.Delete(ctx, e.newCell()); client.IgnoreNotFound(err) != nil {
			t.Errorf("delete cell: %v", err)
		}
	})
	return e, r
}

// reconcileCell returns when the Cell is reconciled again.
func (e *env) reconcileCell(t *testing.T, r *controllers.CellReconciler) time.Duration {
	t.Helper()
	result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: e.ns}})
	if err != nil {
		t.Fatalf("Reconcile: %v", err)
	}
	return result.RequeueAfter
}

// updateCell updates the Cell.
func (e *env) updateCell(t *testing.T, change func(*v1alpha1.Cell)) {
	t.Helper()
	c := e.cell(t)
	change(c)
	if err := e.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func (e *env) expectCell(t *testing.T, status metav1.ConditionStatus, reason, message string) {
	t.Helper()
	c := e.cell(t)
	ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.Ready)
	if ready == nil || ready.Status != status || ready.Reason != reason || !strings.Contains(ready.Message, message) {
		t.Fatalf("condition Ready is %+v, want %s, %s and %q in the message", ready, status, reason, message)
	}
	if c.Status.ObservedGeneration != c.Generation {
		t.Fatalf("observedGeneration is %d, want %d", c.Status.ObservedGeneration, c.Generation)
	}
}

// connection returns the connection in the Secret that is mounted.
func (e *env) connection(t *testing.T) (c placement.Connection) {
	t.Helper()
	if err := json.Unmarshal(e.secret(t, "mnemo-cells").Data[e.ns+".json"], &c); err != nil {
		t.Fatalf("parse connection: %v", err)
	}
	return c
}

func TestCellBecomesReady(t *testing.T) {
	t.Parallel()
	e, reconcile := setupCell(t, func(c *v1alpha1.Cell) { c.Spec.Milvus.SecretRef = &v1alpha1.CellSecretRef{Name: "milvus"} })
	reconcile()
	e.expectCell(t, metav1.ConditionFalse, v1alpha1.ReasonSecretNotFound, "create Secret milvus in namespace "+e.ns)
	credentials := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: "milvus"}, StringData: map[string]string{"username": "root"}}
	e.mustCreate(t, credentials)
	reconcile()
	e.expectCell(t, metav1.ConditionFalse, v1alpha1.ReasonSecretNotFound, "add keys username and password")

	credentials.StringData = map[string]string{"password": "one", "ca.crt": "pem"}
	if err := e.Update(t.Context(), credentials); err != nil {
		t.Fatal(err)
	}
	e.store.fail(errNotConnected, "Ping")
	reconcile()
	e.expectCell(t, metav1.ConditionFalse, v1alpha1.ReasonConnecting, "mnemo-cells")
	expectEqual(t, "connection", e.connection(t), placement.Connection{Address: "milvus.test:19530", Username: "root", Password: "one", CA: "pem"})
	if _, stored := e.store.cell(e.ns); stored {
		t.Error("the cell accepts tenants before it is reachable")
	}

	e.store.heal()
	reconcile()
	e.expectCell(t, metav1.ConditionTrue, v1alpha1.ReasonConnected, "is reachable")
	stored, _ := e.store.cell(e.ns)
	expectEqual(t, "stored cell", stored, placement.Cell{Name: e.ns, Region: "eu", Capacity: placement.CellUsage{Tenants: 7, Units: 9}})

	credentials.StringData = map[string]string{"password": "two"}
	if err := e.Update(t.Context(), credentials); err != nil {
		t.Fatal(err)
	}
	e.store.fail(errMilvusUnavailable, "Ping")
	reconcile()
	expectEqual(t, "password", e.connection(t).Password, "two")
	e.expectCell(t, metav1.ConditionFalse, v1alpha1.ReasonUnavailable, "Milvus is unavailable; check spec.milvus")
	e.store.heal()
}

// TestUnreachableCellIsUpdated: a cell that was ready once is drained even if its Milvus or its
// Secret is lost.
func TestUnreachableCellIsUpdated(t *testing.T) {
	t.Parallel()
	e, reconcile := setupCell(t, nil)
	reconcile()
	e.expectCell(t, metav1.ConditionTrue, v1alpha1.ReasonConnected, "is reachable")
	expectStored := func(want placement.Cell) {
		t.Helper()
		want.Name, want.Region = e.ns, "us"
		stored, _ := e.store.cell(e.ns)
		expectEqual(t, "stored cell", stored, want)
	}

	e.store.fail(errMilvusUnavailable, "Ping")
	e.updateCell(t, func(c *v1alpha1.Cell) {
		c.Spec.Cordoned, c.Spec.Region, c.Spec.Capacity = true, "us", v1alpha1.CellCapacity{Tenants: 8}
	})
	reconcile()
	e.expectCell(t, metav1.ConditionFalse, v1alpha1.ReasonUnavailable, "Milvus is unavailable")
	expectStored(placement.Cell{Cordoned: true, Capacity: placement.CellUsage{Tenants: 8}})

	e.updateCell(t, func(c *v1alpha1.Cell) {
		c.Spec.Cordoned, c.Spec.Milvus.SecretRef = false, &v1alpha1.CellSecretRef{Name: "milvus"}
	})
	reconcile()
	e.expectCell(t, metav1.ConditionFalse, v1alpha1.ReasonSecretNotFound, "create Secret milvus")
	expectStored(placement.Cell{Capacity: placement.CellUsage{Tenants: 8}})
}

// loadedPinger reaches a cell with the connection that it has loaded.
type loadedPinger struct{ loaded placement.Connection }

func (p *loadedPinger) Ping(_ context.Context, _ string, connection placement.Connection) error {
	if connection != p.loaded {
		return errNotConnected
	}
	return nil
}

// TestCellIsReadyWithItsConnection: a reachable Milvus instance at the old address says nothing about the new one.
func TestCellIsReadyWithItsConnection(t *testing.T) {
	t.Parallel()
	pinger := &loadedPinger{placement.Connection{Address: "milvus.test:19530"}}
	e, r := setupCellReconciler(t, pinger, nil)
	e.reconcileCell(t, r)
	e.expectCell(t, metav1.ConditionTrue, v1alpha1.ReasonConnected, "is reachable")
	e.updateCell(t, func(c *v1alpha1.Cell) { c.Spec.Milvus.Address = "https://[2001:db8::1]:19530" })
	e.reconcileCell(t, r)
	e.expectCell(t, metav1.ConditionFalse, v1alpha1.ReasonConnecting, "mnemo-cells")
	pinger.loaded = e.connection(t)
	e.reconcileCell(t, r)
	e.expectCell(t, metav1.ConditionTrue, v1alpha1.ReasonConnected, "is reachable")
}

// TestUnreadyCellIsNotWrittenAgain: conditions that persist keep their transition times. A Cell in use waits for its Tenants,
// so it is checked less often.
func TestUnreadyCellIsNotWrittenAgain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change   func(*testing.T, *env)
		reason   string
		interval time.Duration
	}{
		"unavailable":    {func(_ *testing.T, e *env) { e.store.fail(errMilvusUnavailable, "Ping") }, v1alpha1.ReasonUnavailable, 2 * time.Second},
		"not connected":  {func(_ *testing.T, e *env) { e.store.fail(errNotConnected, "Ping") }, v1alpha1.ReasonConnecting, 2 * time.Second},
		"without Secret": {withoutCellSecret, v1alpha1.ReasonSecretNotFound, 2 * time.Second},
		"in use":         {deleteCellInUse, v1alpha1.ReasonInUse, time.Minute},
		"in use and unavailable": {func(t *testing.T, e *env) {
			t.Helper()
			deleteCellInUse(t, e)
			e.store.fail(errMilvusUnavailable, "Ping")
		}, v1alpha1.ReasonInUse, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, r := setupCellReconciler(t, nil, nil)
			e.reconcileCell(t, r)
			test.change(t, e)
			e.reconcileCell(t, r)
			e.expectCell(t, metav1.ConditionFalse, test.reason, "")
			c := e.cell(t)
			for i := range c.Status.Conditions { // two transitions within a second look the same
				c.Status.Conditions[i].LastTransitionTime = metav1.NewTime(time.Now().Add(-time.Hour))
			}
			if err := e.Status().Update(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			expectEqual(t, "next check", e.reconcileCell(t, r), test.interval)
			expectEqual(t, "resourceVersion", e.cell(t).ResourceVersion, c.ResourceVersion)
		})
	}
}

func withoutCellSecret(t *testing.T, e *env) {
	t.Helper()
	e.updateCell(t, func(c *v1alpha1.Cell) { c.Spec.Milvus.SecretRef = &v1alpha1.CellSecretRef{Name: "milvus"} })
}

// deleteCellInUse deletes the Cell while a Tenant is placed in it.
func deleteCellInUse(t *testing.T, e *env) {
	t.Helper()
	e.useCells(t)
	tn := e.newTenant("alice")
	tn.Spec.Placement = &v1alpha1.TenantPlacementRequest{Cell: e.ns}
	e.expectReady(t, tn)
	e.mustDelete(t, e.newCell())
}

func TestCellInUseIsNotDeleted(t *testing.T) {
	t.Parallel()
	e, reconcile := setupCell(t, nil)
	reconcile()
	deleteCellInUse(t, e)
	e.store.fail(errMilvusUnavailable, "Ping")
	reconcile()
	e.store.heal()
	e.expectCell(t, metav1.ConditionFalse, v1alpha1.ReasonInUse, "change spec.placement of its Tenants")
	e.expectCell(t, metav1.ConditionFalse, v1alpha1.ReasonInUse, "Partitions cannot be dropped now: Milvus is unavailable")
	expectEqual(t, "tenants", e.cell(t).Status.Tenants, 1)
	if stored, _ := e.store.cell(e.ns); !stored.Cordoned {
		t.Error("a cell that is being deleted accepts tenants")
	}
	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Placement = nil })
	e.moveTo(t, "")
	reconcile()
	if err := e.Get(t.Context(), client.ObjectKey{Name: e.ns}, &v1alpha1.Cell{}); !apierrors.IsNotFound(err) {
		t.Fatalf("get cell: got error %v, want NotFound", err)
	}
	if data := e.secret(t, "mnemo-cells").Data; len(data) != 0 {
		t.Errorf("Secret mnemo-cells contains %v, want no connection", data)
	}
	if _, stored := e.store.cell(e.ns); stored {
		t.Error("the deleted cell is still stored")
	}
}

// useCells makes the reconciler of Tenants place them in cells.
func (e *env) useCells(t *testing.T) {
	t.Helper()
	e.use(t, controllers.Config{CellsSecret: types.NamespacedName{Namespace: e.ns, Name: "mnemo-cells"}})
}

// applyCells stores cells of region eu.
func (e *env) applyCells(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := e.store.ApplyCell(t.Context(), placement.Cell{Name: name, Region: "eu"}); err != nil {
			t.Fatal(err)
		}
	}
}

// moveTo reconciles the tenant, which must migrate to a cell, completes the migration, and checks the status.
func (e *env) moveTo(t *testing.T, cell string) {
	t.Helper()
	for range 2 {
		e.expectReconciled(t)
	}
	e.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionTrue, v1alpha1.ReasonMigrating, "")
	expectEqual(t, "migratingToCell", e.tenant(t).Status.Placement.MigratingToCell, cell)
	e.store.work()
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionTrue, v1alpha1.ReasonAssigned, "")
	expectEqual(t, "cell", e.tenant(t).Status.Placement.Cell, cell)
}

func TestTenantMovesToACell(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.useCells(t)
	e.applyCells(t, "eu-a", "eu-b")
	e.expectReady(t, e.newTenant("alice"))
	expectEqual(t, "cell", e.tenant(t).Status.Placement.Cell, "")
	request := func(p *v1alpha1.TenantPlacementRequest) {
		e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Placement = p })
	}
	request(&v1alpha1.TenantPlacementRequest{Region: "eu"})
	e.moveTo(t, "eu-a")

	request(&v1alpha1.TenantPlacementRequest{Cell: "eu-z"})
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionFalse, v1alpha1.ReasonCellNotFound, `cell "eu-z" does not exist`)
	e.expectCondition(t, v1alpha1.Stalled, metav1.ConditionTrue, v1alpha1.ReasonCellNotFound, "")
	expectEqual(t, "cell", e.tenant(t).Status.Placement.Cell, "eu-a")
	e.applyCells(t, "eu-z")
	e.moveTo(t, "eu-z")

	if err := e.store.ApplyCell(t.Context(), placement.Cell{Name: "eu-z", Region: "eu", Cordoned: true}); err != nil {
		t.Fatal(err)
	}
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionTrue, v1alpha1.ReasonAssigned, "")
	request(&v1alpha1.TenantPlacementRequest{Region: "eu"})
	e.moveTo(t, "eu-a")
	request(nil)
	e.moveTo(t, "")
}

func TestNewTenantWithoutACell(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.useCells(t)
	tn := e.newTenant("alice")
	tn.Spec.Placement = &v1alpha1.TenantPlacementRequest{Region: "eu"}
	e.mustCreate(t, tn)
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionFalse, v1alpha1.ReasonCellNotFound, `region "eu" has no cell`)
	e.expectOneToken(t, "alice")
	e.applyCells(t, "eu-a")
	e.expectReconciled(t)
	expectEqual(t, "cell", e.tenant(t).Status.Placement.Cell, "eu-a")
}

func TestTenantLeavesUnavailableCell(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.useCells(t)
	e.applyCells(t, "eu-a", "eu-b")
	tn := e.newTenant("alice")
	tn.Spec.Placement = &v1alpha1.TenantPlacementRequest{Cell: "eu-a"}
	e.expectReady(t, tn)
	e.stores = e.store.all()
	e.stores.Partitions = withoutCell{e.store, "eu-a"}
	e.useCells(t)
	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Placement.Cell = "eu-b" })
	if _, err := e.reconcile(t); !errors.Is(err, errMilvusUnavailable) {
		t.Fatalf("Reconcile: got error %v, want Unavailable", err)
	}
	e.store.work()
	e.expectReconciled(t)
	expectEqual(t, "cell", e.tenant(t).Status.Placement.Cell, "eu-b")
}

// withoutCell are partitions of which those in a cell are unavailable.
type withoutCell struct {
	placement.Partitions
	cell string
}

func (w withoutCell) Ensure(ctx context.Context, p placement.Placement) (int64, error) {
	if p.Cell == w.cell {
		return 0, errMilvusUnavailable
	}
	return w.Partitions.Ensure(ctx, p)
}

func TestCellsAreDisabled(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tn := e.newTenant("alice")
	tn.Spec.Placement = &v1alpha1.TenantPlacementRequest{Cell: "eu-a"}
	e.mustCreate(t, tn)
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionFalse, v1alpha1.ReasonCellsDisabled, "remove spec.placement")
	expectEqual(t, "cell", e.tenant(t).Status.Placement.Cell, "")
	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Placement = nil })
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
}
