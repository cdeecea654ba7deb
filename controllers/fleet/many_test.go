package fleet_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
)

// TestManyAtOnce applies Tenants of two users before the operator runs.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	const many = 30
	f := newFleet(t)
	for i := range many {
		f.create(t, &v1alpha1.Tenant{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: fmt.Sprint("t", i)},
			Spec: v1alpha1.TenantSpec{DeletionPolicy: v1alpha1.Delete,
				Users: []v1alpha1.TenantUser{{Name: "alice", TokenGeneration: 1}, {Name: "bob", TokenGeneration: 1}}},
		})
	}
	started := time.Now()
	o := f.start(t)
	look := f.look(t)
	eventually(t, patience, func() string { return f.problems(t, look) })
	took := time.Since(started)
	memory := o.counted(t, "process_resident_memory_bytes", "")
	if memory == 0 || memory > 150<<20 {
		t.Errorf("the operator takes %.0f MiB, want less than 150", memory/(1<<20))
	}
	f.seesOrphans(t)
	t.Logf("%d Tenants in %v, %.0f MiB", many, took, memory/(1<<20))
}

// seesOrphans shows that what all tests here end with can fail.
func (f *fleet) seesOrphans(t *testing.T) {
	t.Helper()
	look := f.look(t)
	for what, place := range map[string]func(){
		"a Secret of no user": func() {
			f.create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: "t0-nobody-access"}})
		},
		"a partition of no tenant": func() {
			if _, err := f.index.Ensure(t.Context(), tenant.Place{Placement: tenant.Placement{Collection: f.prefix() + "16_1", Partition: "stray"}}); err != nil {
				t.Fatal(err)
			}
		},
		"a row of no Tenant": func() {
			if _, err := f.db.Apply(t.Context(), tenanttest.NewSpec()); err != nil {
				t.Fatal(err)
			}
		},
		"tokens are valid": func() {
			if _, err := f.owner.Exec(t.Context(), "update tokens set expires_at = now()"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		place()
		if found := f.problems(t, look); !strings.Contains(found, what) {
			t.Errorf("the check does not see %s: %q", what, found)
		}
	}
}
