package controllers_test

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

func TestUninstallRefusesWhileThereAreTenants(t *testing.T) {
	t.Parallel()
	w := setup(t)
	operator, _ := operatorOf(w.ns)
	w.mustCreate(t, operator)
	c := controllers.UninstallConfig{Namespaces: []string{w.ns}, Operator: w.ns + "/mnemo-operator"}
	if err := controllers.Uninstall(t.Context(), testkit.KubeConfig(t), c); err != nil {
		t.Errorf("without Tenants: %v, want nothing to refuse for", err)
	}
	w.mustCreate(t, w.newTenant("alice"))
	w.expectReconciled(t)
	err := controllers.Uninstall(t.Context(), testkit.KubeConfig(t), c)
	for _, want := range []string{w.ns + "/acme", "kubectl -n " + w.ns + " annotate deployment mnemo-operator mnemo.dev/release-tenants=true"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("with a Tenant: %v, want a refusal that says %q", err, want)
		}
	}
}

func TestUninstallLetsTenantsGo(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.mustCreate(t, w.newTenant("alice"))
	w.expectReconciled(t)
	operator, pod := operatorOf(w.ns)
	w.mustCreate(t, operator)
	w.mustCreate(t, pod)

	// The pod of the operator is there until it has let go of its lease.
	early, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	c := controllers.UninstallConfig{Namespaces: []string{w.ns}, Release: true, Operator: w.ns + "/mnemo-operator"}
	if err := controllers.Uninstall(early, testkit.KubeConfig(t), c); err == nil {
		t.Error("let go while the operator ran")
	}
	if tn := w.tenant(t); len(tn.Finalizers) == 0 {
		t.Error("the finalizer was taken off while the operator ran")
	}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(operator), operator); err != nil || *operator.Spec.Replicas != 0 {
		t.Errorf("the operator is to have %v replicas, %v; want none", operator.Spec.Replicas, err)
	}

	w.mustDelete(t, pod)
	if err := controllers.Uninstall(t.Context(), testkit.KubeConfig(t), c); err != nil {
		t.Fatalf("uninstall: %v", err)
	}
	tn := w.tenant(t)
	id := w.id(t)
	w.mustDelete(t, tn)
	w.expectMissing(t, &v1alpha1.Tenant{}, tn.Name)
	if n := w.fake.Calls()["Retire"]; n != 0 || len(w.fake.Valid(id, "alice")) != 1 {
		t.Errorf("the store was told to retire the tenant %d times; want its data and tokens as they were", n)
	}
}

// TestUninstallIsToldByAnnotation: after a refusal Helm takes no values.
func TestUninstallIsToldByAnnotation(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.mustCreate(t, w.newTenant("alice"))
	w.expectReconciled(t)
	operator, _ := operatorOf(w.ns)
	operator.Annotations = map[string]string{controllers.ReleaseAnnotation: "true"}
	w.mustCreate(t, operator)
	c := controllers.UninstallConfig{Namespaces: []string{w.ns}, Operator: w.ns + "/mnemo-operator"}
	if err := controllers.Uninstall(t.Context(), testkit.KubeConfig(t), c); err != nil {
		t.Fatalf("uninstall: %v", err)
	}
	if tn := w.tenant(t); len(tn.Finalizers) != 0 {
		t.Errorf("finalizers %q, want none", tn.Finalizers)
	}
}

// operatorOf returns a Deployment like the chart's and a pod of it.
func operatorOf(namespace string) (*appsv1.Deployment, *corev1.Pod) {
	labels, one := map[string]string{"app.kubernetes.io/component": "operator"}, int32(1)
	spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "operator", Image: "mnemo"}}}
	return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mnemo-operator"},
			Spec: appsv1.DeploymentSpec{
				Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
			},
		}, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mnemo-operator-1", Labels: labels}, Spec: spec,
		}
}
