package controllers

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
)

// TestReadyGaugeShowsAnOutage: a Cell that is being deleted still stores vectors.
func TestReadyGaugeShowsAnOutage(t *testing.T) {
	t.Parallel()
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	cell := &v1alpha1.Cell{ObjectMeta: metav1.ObjectMeta{Name: "eu", Finalizers: []string{v1alpha1.CellFinalizer}}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cell).WithStatusSubresource(cell).Build()
	store := &cellStub{}
	r := NewCellReconciler(c, c, Config{CellsSecret: types.NamespacedName{Namespace: "mnemo", Name: "mnemo-cells"}}, Stores{Cells: store, CellPinger: store})
	expect := func(want float64) {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "eu"}}); err != nil {
			t.Fatal(err)
		}
		if got := testutil.ToFloat64(r.metrics.ready.WithLabelValues("eu")); got != want {
			t.Errorf("mnemo_cell_ready is %v, want %v", got, want)
		}
	}
	expect(1)
	if err := c.Delete(t.Context(), cell); err != nil {
		t.Fatal(err)
	}
	expect(1)
	store.unavailable = fault.New(fault.Unavailable, "Milvus is unavailable")
	expect(0)
}

// cellStub is a cell in which a tenant is placed.
type cellStub struct {
	placement.CellStore
	unavailable error
}

func (*cellStub) CellUsage(context.Context, string) (placement.CellUsage, int64, error) {
	return placement.CellUsage{Tenants: 1}, 0, nil
}
func (*cellStub) UpdateCell(context.Context, placement.Cell) error { return nil }
func (*cellStub) ApplyCell(context.Context, placement.Cell) error  { return nil }
func (s *cellStub) Ping(context.Context, string, placement.Connection) error {
	return s.unavailable
}
