package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/hack/sample"
)

const (
	operatorNamespace = "mnemo-system"
	operatorUser      = "system:serviceaccount:" + operatorNamespace + ":mnemo-operator"
)

// prepareCluster installs the Tenant resource and the operator's rights.
func (p *platform) prepareCluster(ctx context.Context) (err error) {
	done := p.progress.Step("Tenant resource", "installing")
	defer func() { done(err) }()
	if p.client, err = sample.Connect(p.kube.Kubeconfig); err != nil {
		return err
	}
	namespace := &corev1.Namespace{}
	namespace.Name = operatorNamespace
	if err := client.IgnoreAlreadyExists(p.client.Create(ctx, namespace)); err != nil {
		return fmt.Errorf("create namespace: %w", err)
	}
	for _, dir := range []string{"crd", "rbac"} {
		if _, err := sample.ApplyKustomization(ctx, p.client, filepath.Join(p.root, "config", dir)); err != nil {
			return err
		}
	}
	return p.waitEstablished(ctx, "tenants.mnemo.dev")
}

// waitEstablished waits until the API server serves a custom resource.
func (p *platform) waitEstablished(ctx context.Context, name string) error {
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		if err := p.client.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
			return false, err
		}
		return isEstablished(crd), nil
	})
	if err != nil {
		return fmt.Errorf("wait until %s is established: %w", name, err)
	}
	return nil
}

// isEstablished reports whether the API server serves the resources of a CRD. Its conditions are
// null when it was just created.
func isEstablished(crd *unstructured.Unstructured) bool {
	value, _, _ := unstructured.NestedFieldNoCopy(crd.Object, "status", "conditions") // false for another type, too
	conditions, _ := value.([]any)
	return slices.ContainsFunc(conditions, func(c any) bool {
		condition, ok := c.(map[string]any)
		return ok && condition["type"] == "Established" && condition["status"] == "True"
	})
}

// buildKubectl builds kubectl, which only users of the platform need. A failure does
// not stop the platform.
func (p *platform) buildKubectl(ctx context.Context) {
	if err := p.kube.EnsureKubectl(ctx); err != nil && ctx.Err() == nil {
		p.progress.Printf("==> kubectl is not available: %v", err)
	}
}

// applySample applies config/samples, waits until the Tenant is Ready and reads
// its users' Secrets.
func (p *platform) applySample(ctx context.Context) (err error) {
	done := p.progress.Step("sample Tenant", "applying config/samples and waiting until it is Ready")
	defer func() { done(err) }()
	if p.sample, err = sample.Apply(ctx, p.client, p.root); err != nil {
		return fmt.Errorf("see %s/logs/mnemo-operator.log: %w", p.dir, err)
	}
	return nil
}
