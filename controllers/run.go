package controllers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// leaseName is the name of the leader election lease of an operator for all Tenants.
const leaseName = "mnemo-operator"

// leaseOf returns the name of the lease of the operators with a selector. Operators
// with different selectors lead at the same time.
func leaseOf(selector labels.Selector) string {
	if selector.Empty() {
		return leaseName
	}
	hash := sha256.Sum256([]byte(selector.String()))
	return leaseName + "-" + hex.EncodeToString(hash[:4])
}

// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=mnemo-system,resources=leases,verbs=get;create;update
// +kubebuilder:rbac:groups="",namespace=mnemo-system,resources=events,verbs=create

var setLogger sync.Once

// SetLogger sets the logger of controller-runtime and client-go. Both are global,
// so only the first call has an effect. Run calls it with Config.Logger.
func SetLogger(logger *slog.Logger) {
	setLogger.Do(func() {
		log := logr.FromSlogHandler(logger.Handler())
		ctrl.SetLogger(log)
		klog.SetLogger(log)
	})
}

// Run reconciles Tenants until ctx is done, and then returns nil. It returns an error if it cannot
// list them and their Secrets within Config.SyncTimeout.
func Run(ctx context.Context, restConfig *rest.Config, c Config, s Stores) error {
	c = c.withDefaults()
	if restConfig.QPS == 0 {
		// client-go's default of 5 requests/s delays a Tenant of 1,000 users by minutes.
		restConfig = rest.CopyConfig(restConfig)
		restConfig.QPS, restConfig.Burst = 200, 400
	}
	SetLogger(c.Logger)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	mgr, err := newManager(ctx, restConfig, c)
	if err != nil {
		return err
	}
	if c.Cluster == "" {
		if c.Cluster, err = clusterUID(ctx, mgr.GetAPIReader()); err != nil {
			return err
		}
	}
	r := NewTenantReconciler(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder(leaseName), c, s)
	unregister, err := register(ctrlmetrics.Registry, r.collectors())
	if err != nil {
		return err
	}
	defer unregister()
	if err := r.SetupWithManager(ctx, mgr); err != nil {
		return err
	}
	if c.CellsSecret.Name != "" {
		cells := NewCellReconciler(mgr.GetClient(), mgr.GetAPIReader(), c, s)
		unregisterCells, err := register(ctrlmetrics.Registry, cells.metrics.collectors())
		if err != nil {
			return err
		}
		defer unregisterCells()
		if err := cells.SetupWithManager(mgr); err != nil {
			return err
		}
	}
	if err := mgr.Add(&orphanSweep{r}); err != nil {
		return fmt.Errorf("set up orphan sweep: %w", err)
	}
	if err := startManager(tenant.WithActor(ctx, tenant.Actor{Kind: tenant.ActorOperator}), mgr, cancel, c); err != nil {
		return fmt.Errorf("run operator: %w", err)
	}
	return nil
}

// NewScheme returns a scheme with the types that the operator uses.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("create scheme: %w", err)
	}
	return scheme, nil
}

func newManager(ctx context.Context, restConfig *rest.Config, c Config) (ctrl.Manager, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	cacheOptions := cache.Options{
		DefaultNamespaces: map[string]cache.Config{},
		DefaultTransform:  cache.TransformStripManagedFields(),
		ByObject:          cachedObjects(c),
	}
	for _, name := range c.Namespaces {
		cacheOptions.DefaultNamespaces[name] = cache.Config{}
	}
	if len(c.Namespaces) > 0 {
		cacheOptions.NewInformer = newInformer(c.Logger)
	}
	skipNameValidation := true // tests run several operators in one process
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme:                        scheme,
		Logger:                        logr.FromSlogHandler(c.Logger.Handler()),
		Cache:                         cacheOptions,
		NewCache:                      newCache(ctx),
		Controller:                    config.Controller{SkipNameValidation: &skipNameValidation},
		Metrics:                       metricsserver.Options{BindAddress: addressOrDisabled(c.MetricsAddress)},
		HealthProbeBindAddress:        addressOrDisabled(c.HealthAddress),
		LeaderElection:                c.LeaderElection,
		LeaderElectionID:              leaseOf(c.Selector),
		LeaderElectionNamespace:       c.LeaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, fmt.Errorf("create manager: %w", err)
	}
	if err := errors.Join(
		mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("caches", isSynced(mgr.GetCache())),
	); err != nil {
		return nil, fmt.Errorf("add health checks: %w", err)
	}
	return mgr, nil
}

// cachedObjects selects what is cached: only the operator's Secrets, without values.
func cachedObjects(c Config) map[client.Object]cache.ByObject {
	objects := map[client.Object]cache.ByObject{
		&v1alpha1.Tenant{}: {Label: c.Selector},
		&corev1.Secret{}: {
			Label:     labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}),
			Transform: stripValues,
		},
	}
	if c.CellsSecret.Name != "" { // otherwise, their CRD may be missing
		objects[&v1alpha1.Cell{}] = cache.ByObject{Label: c.CellsSelector}
	}
	return objects
}

func addressOrDisabled(address string) string {
	if address == "" {
		return "0"
	}
	return address
}

// clusterUID returns the uid of namespace kube-system, which identifies the cluster.
func clusterUID(ctx context.Context, live client.Reader) (string, error) {
	ns := &corev1.Namespace{}
	if err := live.Get(ctx, client.ObjectKey{Name: "kube-system"}, ns); err != nil {
		return "", fmt.Errorf("get namespace kube-system: %w", err)
	}
	return string(ns.UID), nil
}

// register registers all collectors, or none if one fails.
func register(registry ctrlmetrics.RegistererGatherer, collectors []prometheus.Collector) (unregister func(), err error) {
	var registered []prometheus.Collector
	unregister = func() {
		for _, c := range registered {
			registry.Unregister(c)
		}
	}
	for _, c := range collectors {
		if err := registry.Register(c); err != nil {
			unregister()
			return nil, fmt.Errorf("register metrics: %w", err)
		}
		registered = append(registered, c)
	}
	return unregister, nil
}
