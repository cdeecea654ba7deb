package controllers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
)

// UninstallConfig configures Uninstall.
type UninstallConfig struct {
	// Release removes the finalizer of every Tenant instead of refusing while
	// there are Tenants.
	Release bool
	// Operator is the namespace/name of the operator's Deployment. Its annotation
	// ReleaseAnnotation has the effect of Release.
	Operator string
	// Namespaces are the watched namespaces. Default: all.
	Namespaces []string
	// Selector selects the Tenants of the installation. Default: all.
	Selector labels.Selector
	// CellsSecret contains the connections of Cells. It is deleted. Default: no Cells.
	CellsSecret types.NamespacedName
	// Cells selects the Cells whose finalizers are removed. Required with CellsSecret.
	Cells  labels.Selector
	Logger *slog.Logger // slog.Default() when nil
}

// ReleaseAnnotation releases all Tenants during an uninstall if it is "true" on the
// operator's Deployment. Helm accepts no values for an uninstall, and no
// upgrade after an uninstall that failed.
const ReleaseAnnotation = "mnemo.dev/release-tenants"

const (
	// namedTenants is the number of Tenants that a refusal names.
	namedTenants = 5
	// stopPoll is the interval at which the operator's pods are listed.
	stopPoll = 500 * time.Millisecond
)

// Uninstall ensures that uninstalling the operator leaves no Tenant that cannot be
// deleted. It fails while there are Tenants or, with Release, stops the operator
// and removes their finalizers. The data stays in the stores.
func Uninstall(ctx context.Context, cluster *rest.Config, c UninstallConfig) error {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	scheme, err := NewScheme()
	if err != nil {
		return err
	}
	k, err := client.New(cluster, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	tenants, err := finalizedTenants(ctx, k, c)
	if err != nil {
		return err
	}
	if len(tenants) == 0 {
		return releaseCells(ctx, k, c)
	}
	if !c.Release && !annotated(ctx, k, c.Operator) {
		return errors.New(refusal(tenants, c.Operator))
	}
	if err := stopOperator(ctx, k, c.Operator); err != nil {
		return err
	}
	// Again, because the operator may have added finalizers until it stopped.
	if tenants, err = finalizedTenants(ctx, k, c); err != nil {
		return err
	}
	for i := range tenants {
		t := &tenants[i]
		after := t.DeepCopy()
		controllerutil.RemoveFinalizer(after, v1alpha1.Finalizer)
		if err := client.IgnoreNotFound(k.Patch(ctx, after, client.MergeFrom(t))); err != nil {
			return fmt.Errorf("remove finalizer of Tenant %s/%s: %w", t.Namespace, t.Name, err)
		}
		c.Logger.InfoContext(ctx, "finalizer removed; the data stays in the stores", "namespace", t.Namespace, "name", t.Name, "uid", t.UID)
	}
	return releaseCells(ctx, k, c)
}

// releaseCells removes the finalizers of the selected Cells, after it has stopped the operator, and
// deletes the Secret with their connections.
func releaseCells(ctx context.Context, k client.Client, c UninstallConfig) error {
	if c.CellsSecret.Name == "" {
		return nil
	}
	var list v1alpha1.CellList
	err := k.List(ctx, &list, client.MatchingLabelsSelector{Selector: c.Cells})
	if err != nil && !meta.IsNoMatchError(err) { // without the CRD there are no Cells
		return fmt.Errorf("list Cells: %w", err)
	}
	list.Items = slices.DeleteFunc(list.Items, func(cell v1alpha1.Cell) bool {
		return !controllerutil.ContainsFinalizer(&cell, v1alpha1.CellFinalizer)
	})
	if len(list.Items) > 0 {
		if err := stopOperator(ctx, k, c.Operator); err != nil {
			return err
		}
	}
	for i := range list.Items {
		after := list.Items[i].DeepCopy()
		controllerutil.RemoveFinalizer(after, v1alpha1.CellFinalizer)
		if err := client.IgnoreNotFound(k.Patch(ctx, after, client.MergeFrom(&list.Items[i]))); err != nil {
			return fmt.Errorf("remove finalizer of Cell %s: %w", after.Name, err)
		}
		c.Logger.InfoContext(ctx, "finalizer removed; the vectors stay in the cell", "cell", after.Name)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.CellsSecret.Namespace, Name: c.CellsSecret.Name}}
	if err := client.IgnoreNotFound(k.Delete(ctx, secret)); err != nil {
		return fmt.Errorf("delete Secret of connections: %w", err)
	}
	return nil
}

// finalizedTenants lists the Tenants of the installation that have the operator's finalizer.
func finalizedTenants(ctx context.Context, k client.Reader, c UninstallConfig) ([]v1alpha1.Tenant, error) {
	namespaces := c.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	selector := c.Selector
	if selector == nil {
		selector = labels.Everything()
	}
	var tenants []v1alpha1.Tenant
	for _, namespace := range namespaces {
		var list v1alpha1.TenantList
		err := k.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector})
		if meta.IsNoMatchError(err) {
			return nil, nil // without the CRD there are no Tenants
		}
		if err != nil {
			return nil, fmt.Errorf("list Tenants: %w", err)
		}
		for i := range list.Items {
			if controllerutil.ContainsFinalizer(&list.Items[i], v1alpha1.Finalizer) {
				tenants = append(tenants, list.Items[i])
			}
		}
	}
	return tenants, nil
}

// annotated reports whether the operator's Deployment has ReleaseAnnotation. A
// Deployment that cannot be read counts as one without.
func annotated(ctx context.Context, k client.Reader, operator string) bool {
	namespace, name, _ := strings.Cut(operator, "/")
	var d appsv1.Deployment
	err := k.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &d)
	return err == nil && d.Annotations[ReleaseAnnotation] == "true"
}

func refusal(tenants []v1alpha1.Tenant, operator string) string {
	names := make([]string, 0, namedTenants+1)
	for i := range tenants {
		if i == namedTenants {
			names = append(names, "…")
			break
		}
		names = append(names, tenants[i].Namespace+"/"+tenants[i].Name)
	}
	namespace, name, _ := strings.Cut(operator, "/")
	return fmt.Sprintf("%d Tenants exist (%s) and cannot be deleted without the operator: delete them first "+
		"(kubectl get tenants -A), or release them and retain their data "+
		"(kubectl -n %s annotate deployment %s %s=true), then uninstall again",
		len(tenants), strings.Join(names, ", "), namespace, name, ReleaseAnnotation)
}

// stopOperator scales the Deployment to zero and waits until its pods are gone,
// because a running operator would add the finalizers again.
func stopOperator(ctx context.Context, k client.Client, name string) error {
	namespace, name, ok := strings.Cut(name, "/")
	if !ok {
		return errors.New("--operator-deployment must be the namespace/name of the operator's Deployment to release Tenants")
	}
	var d appsv1.Deployment
	if err := k.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &d); err != nil {
		return client.IgnoreNotFound(err)
	}
	zeroReplicas := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`))
	if err := k.Patch(ctx, &d, zeroReplicas); err != nil {
		return fmt.Errorf("stop the operator: %w", err)
	}
	tick := time.NewTicker(stopPoll)
	defer tick.Stop()
	for {
		var pods corev1.PodList
		if err := k.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels)); err != nil {
			return fmt.Errorf("wait for the operator to stop: %w", err)
		}
		if len(pods.Items) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the operator to stop: %w", ctx.Err())
		case <-tick.C:
		}
	}
}
