package controllers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
)

// UninstallConfig says what Uninstall may do.
type UninstallConfig struct {
	// Release lets all Tenants go instead of refusing while there are some.
	Release bool
	// Operator is namespace/name of the operator's Deployment, needed to release.
	// Its annotation ReleaseAnnotation says the same as Release.
	Operator string
	// Namespaces are those whose Tenants were served. Default: all.
	Namespaces []string
	Logger     *slog.Logger // slog.Default() when nil
}

// ReleaseAnnotation is "true" on the operator's Deployment to let all Tenants go
// when it is uninstalled. Helm takes no values with an uninstall, and no upgrade
// after one that was refused.
const ReleaseAnnotation = "mnemo.dev/release-tenants"

const (
	// namedTenants is how many Tenants a refusal names.
	namedTenants = 5
	// stopPoll is how often the operator's pods are looked for while it stops.
	stopPoll = 500 * time.Millisecond
)

// Uninstall makes sure that taking the operator away leaves no Tenant behind
// that cannot be deleted: it fails while there are any, or, told to, stops the
// operator and takes the finalizers off. The data stays in the stores.
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
	held, err := heldTenants(ctx, k, c.Namespaces)
	if err != nil || len(held) == 0 {
		return err
	}
	if !c.Release && !annotated(ctx, k, c.Operator) {
		return errors.New(refusal(held, c.Operator))
	}
	if err := stopOperator(ctx, k, c.Operator); err != nil {
		return err
	}
	// Again: the operator may have taken some up until it stopped.
	if held, err = heldTenants(ctx, k, c.Namespaces); err != nil {
		return err
	}
	for i := range held {
		t := &held[i]
		after := t.DeepCopy()
		controllerutil.RemoveFinalizer(after, v1alpha1.Finalizer)
		if err := client.IgnoreNotFound(k.Patch(ctx, after, client.MergeFrom(t))); err != nil {
			return fmt.Errorf("let Tenant %s/%s go: %w", t.Namespace, t.Name, err)
		}
		c.Logger.InfoContext(ctx, "let go of a Tenant; its data stays in the stores", "namespace", t.Namespace, "name", t.Name, "uid", t.UID)
	}
	return nil
}

// heldTenants lists the Tenants that have our finalizer.
func heldTenants(ctx context.Context, k client.Reader, namespaces []string) ([]v1alpha1.Tenant, error) {
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	var held []v1alpha1.Tenant
	for _, namespace := range namespaces {
		var list v1alpha1.TenantList
		err := k.List(ctx, &list, client.InNamespace(namespace))
		if meta.IsNoMatchError(err) {
			return nil, nil // the kind itself is gone, and all Tenants with it
		}
		if err != nil {
			return nil, fmt.Errorf("list Tenants: %w", err)
		}
		for i := range list.Items {
			if controllerutil.ContainsFinalizer(&list.Items[i], v1alpha1.Finalizer) {
				held = append(held, list.Items[i])
			}
		}
	}
	return held, nil
}

// annotated tells whether the operator's Deployment says to let Tenants go. One
// that cannot be read says no.
func annotated(ctx context.Context, k client.Reader, operator string) bool {
	namespace, name, _ := strings.Cut(operator, "/")
	var d appsv1.Deployment
	err := k.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &d)
	return err == nil && d.Annotations[ReleaseAnnotation] == "true"
}

func refusal(held []v1alpha1.Tenant, operator string) string {
	names := make([]string, 0, namedTenants+1)
	for i := range held {
		if i == namedTenants {
			names = append(names, "…")
			break
		}
		names = append(names, held[i].Namespace+"/"+held[i].Name)
	}
	namespace, name, _ := strings.Cut(operator, "/")
	return fmt.Sprintf("there are %d Tenants (%s), which nobody could delete without the operator: delete them first "+
		"(kubectl get tenants -A), or let them go and keep their data "+
		"(kubectl -n %s annotate deployment %s %s=true), then uninstall again",
		len(held), strings.Join(names, ", "), namespace, name, ReleaseAnnotation)
}

// stopOperator scales the Deployment to none and waits until its pods are gone:
// a running operator would put finalizers back.
func stopOperator(ctx context.Context, k client.Client, name string) error {
	namespace, name, ok := strings.Cut(name, "/")
	if !ok {
		return errors.New("releasing Tenants needs the operator's Deployment as namespace/name (--operator-deployment)")
	}
	var d appsv1.Deployment
	if err := k.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &d); err != nil {
		return client.IgnoreNotFound(err) // not there: nothing runs
	}
	none := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`))
	if err := k.Patch(ctx, &d, none); err != nil {
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
