package controllers_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

func TestUninstallRefusesWhileTenantsExist(t *testing.T) {
	t.Parallel()
	e := setup(t)
	operator, _ := operatorOf(e.ns)
	e.mustCreate(t, operator)
	c := controllers.UninstallConfig{Namespaces: []string{e.ns}, Operator: e.ns + "/mnemo-operator"}
	if err := controllers.Uninstall(t.Context(), testkit.KubeConfig(t), c); err != nil {
		t.Errorf("without Tenants: got error %v, want success", err)
	}
	e.mustCreate(t, e.newTenant("alice"))
	e.expectReconciled(t)
	err := controllers.Uninstall(t.Context(), testkit.KubeConfig(t), c)
	for _, want := range []string{e.ns + "/acme", "kubectl -n " + e.ns + " annotate deployment mnemo-operator mnemo.dev/release-tenants=true"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("with a Tenant: got error %v, want one that contains %q", err, want)
		}
	}
}

func TestUninstallReleasesTenants(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.mustCreate(t, e.newTenant("alice"))
	e.expectReconciled(t)
	operator, pod := operatorOf(e.ns)
	e.mustCreate(t, operator)
	e.mustCreate(t, pod)

	c := controllers.UninstallConfig{Namespaces: []string{e.ns}, Release: true, Operator: e.ns + "/mnemo-operator"}
	config, done := testkit.KubeConfig(t), make(chan error, 1)
	go func() { done <- controllers.Uninstall(t.Context(), config, c) }()
	eventually(t, func() bool {
		err := e.Get(t.Context(), client.ObjectKeyFromObject(operator), operator)
		return err == nil && *operator.Spec.Replicas == 0
	})
	if tn := e.tenant(t); len(tn.Finalizers) == 0 {
		t.Error("the finalizer was removed while the operator's pod was running")
	}
	e.mustDelete(t, pod)
	if err := <-done; err != nil {
		t.Fatalf("Uninstall: %v", err)
	}
	tn := e.tenant(t)
	id := e.id(t)
	e.mustDelete(t, tn)
	e.expectMissing(t, &v1alpha1.Tenant{}, tn.Name)
	expectEqual(t, "calls of Retire", e.store.counts()["Retire"], 0)
	expectEqual(t, "valid tokens", len(e.store.valid(id, "alice")), 1)
}

// TestUninstallSelectsTenants: Tenants of another release in the same namespaces neither prevent the uninstallation nor lose
// their finalizers.
func TestUninstallSelectsTenants(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tn := e.newTenant("alice")
	tn.Labels = map[string]string{"database": "a"}
	e.mustCreate(t, tn)
	e.expectReconciled(t)
	operator, _ := operatorOf(e.ns)
	e.mustCreate(t, operator)
	uninstall := func(database string) error {
		return controllers.Uninstall(t.Context(), testkit.KubeConfig(t), controllers.UninstallConfig{Namespaces: []string{e.ns}, Operator: e.ns + "/mnemo-operator",
			Selector: labels.SelectorFromSet(labels.Set{"database": database})})
	}
	if err := uninstall("b"); err != nil {
		t.Errorf("Uninstall of the other release: %v", err)
	}
	if len(e.tenant(t).Finalizers) == 0 {
		t.Error("the finalizer of a Tenant of another release was removed")
	}
	if err := uninstall("a"); err == nil || !strings.Contains(err.Error(), e.ns+"/acme") {
		t.Errorf("Uninstall of the Tenant's release: %v, want one that names the Tenant", err)
	}
}

// TestUninstallReleasesCells: Cells hold no data that would be lost, so they do not prevent it. The
// credentials of their Milvus instances do not stay.
func TestUninstallReleasesCells(t *testing.T) {
	t.Parallel()
	e, reconcile := setupCell(t, func(c *v1alpha1.Cell) { c.Labels = map[string]string{"installation": c.Name} })
	reconcile()
	operator, _ := operatorOf(e.ns)
	e.mustCreate(t, operator)
	uninstall := func(installation string) {
		t.Helper()
		c := controllers.UninstallConfig{Namespaces: []string{e.ns}, Operator: e.ns + "/mnemo-operator",
			CellsSecret: types.NamespacedName{Namespace: installation, Name: "mnemo-cells"},
			Cells:       labels.SelectorFromSet(labels.Set{"installation": installation})}
		if err := controllers.Uninstall(t.Context(), testkit.KubeConfig(t), c); err != nil {
			t.Fatalf("Uninstall of installation %s: %v", installation, err)
		}
	}
	uninstall("another")
	if len(e.cell(t).Finalizers) == 0 {
		t.Error("the finalizer of a Cell of another installation was removed")
	}
	e.secret(t, "mnemo-cells") // is not deleted either
	uninstall(e.ns)
	e.expectMissing(t, &corev1.Secret{}, "mnemo-cells")
	if finalizers := e.cell(t).Finalizers; len(finalizers) != 0 {
		t.Errorf("finalizers %q, want none", finalizers)
	}
}

// TestUninstallWithoutDefinitions: the definitions of Cells, or of both resources, may be deleted before the release.
func TestUninstallWithoutDefinitions(t *testing.T) {
	t.Parallel()
	for name, missing := range map[string]func(resource string) bool{
		"of Cells":             func(resource string) bool { return strings.HasPrefix(resource, "cells") },
		"of Tenants and Cells": func(string) bool { return true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			e.mustCreate(t, secretNamed(e.ns, "mnemo-cells"))
			config := rest.CopyConfig(testkit.KubeConfig(t))
			config.Wrap(func(next http.RoundTripper) http.RoundTripper { return withoutResources{next, missing} })
			c := controllers.UninstallConfig{Namespaces: []string{e.ns}, Operator: e.ns + "/mnemo-operator",
				CellsSecret: types.NamespacedName{Namespace: e.ns, Name: "mnemo-cells"}, Cells: labels.Everything()}
			if err := controllers.Uninstall(t.Context(), config, c); err != nil {
				t.Errorf("Uninstall: %v", err)
			}
			e.expectMissing(t, &corev1.Secret{}, "mnemo-cells")
		})
	}
}

// withoutResources removes resources of Mnemo from the discovery.
type withoutResources struct {
	next    http.RoundTripper
	missing func(resource string) bool
}

func (w withoutResources) RoundTrip(req *http.Request) (*http.Response, error) {
	group := "/apis/" + v1alpha1.GroupVersion.String()
	if req.URL.Path != "/apis" && req.URL.Path != group {
		return w.next.RoundTrip(req)
	}
	req = req.Clone(req.Context())
	req.Header.Set("Accept", "application/json") // not all groups with their resources
	if req.URL.Path != group {
		return w.next.RoundTrip(req)
	}
	res, err := w.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	var list metav1.APIResourceList
	if err := json.NewDecoder(res.Body).Decode(&list); err != nil {
		return nil, err
	}
	list.APIResources = slices.DeleteFunc(list.APIResources, func(r metav1.APIResource) bool { return w.missing(r.Name) })
	if len(list.APIResources) == 0 {
		res.StatusCode = http.StatusNotFound
	}
	body, err := json.Marshal(list)
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	res.Header.Del("Content-Length")
	return res, err
}

// TestUninstallReleasesByAnnotation: Helm accepts no values after a refusal.
func TestUninstallReleasesByAnnotation(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.mustCreate(t, e.newTenant("alice"))
	e.expectReconciled(t)
	operator, _ := operatorOf(e.ns)
	operator.Annotations = map[string]string{controllers.ReleaseAnnotation: "true"}
	e.mustCreate(t, operator)
	c := controllers.UninstallConfig{Namespaces: []string{e.ns}, Operator: e.ns + "/mnemo-operator"}
	if err := controllers.Uninstall(t.Context(), testkit.KubeConfig(t), c); err != nil {
		t.Fatalf("uninstall: %v", err)
	}
	if tn := e.tenant(t); len(tn.Finalizers) != 0 {
		t.Errorf("finalizers %q, want none", tn.Finalizers)
	}
}

// operatorOf returns a Deployment like that of the chart, and a pod of it.
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
