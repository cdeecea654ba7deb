package controllers

import (
	"context"
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
)

// leaseName is the lease that replicas of the operator compete for.
const leaseName = "mnemo-operator"

// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=mnemo-system,resources=leases,verbs=get;create;update
// +kubebuilder:rbac:groups="",namespace=mnemo-system,resources=events,verbs=create

var setLogger sync.Once

// SetLogger gives the logs of controller-runtime and client-go to the logger.
// They are the process's: the first call counts, before anything else uses
// them, and Run makes it if nobody did.
func SetLogger(logger *slog.Logger) {
	setLogger.Do(func() {
		log := logr.FromSlogHandler(logger.Handler())
		ctrl.SetLogger(log)
		klog.SetLogger(log)
	})
}

// Run reconciles Tenants until ctx ends, and returns nil then.
func Run(ctx context.Context, restConfig *rest.Config, c Config, s Stores) error {
	c = c.withDefaults()
	if restConfig.QPS == 0 {
		// client-go's 5 a second would make a thousand users wait for minutes.
		restConfig = rest.CopyConfig(restConfig)
		restConfig.QPS, restConfig.Burst = 200, 400
	}
	SetLogger(c.Logger)
	mgr, err := newManager(restConfig, c)
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
	if err := mgr.Add(&orphanSweep{r}); err != nil {
		return fmt.Errorf("set up orphan sweep: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run operator: %w", err)
	}
	return nil
}

// NewScheme returns a scheme with the types the operator uses.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("make scheme: %w", err)
	}
	return scheme, nil
}

func newManager(restConfig *rest.Config, c Config) (ctrl.Manager, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	namespaces := map[string]cache.Config{}
	for _, name := range c.Namespaces {
		namespaces[name] = cache.Config{}
	}
	reused := true // a process may end one operator and start another, as tests do
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme: scheme,
		Logger: logr.FromSlogHandler(c.Logger.Handler()),
		Cache: cache.Options{
			DefaultNamespaces: namespaces,
			DefaultTransform:  cache.TransformStripManagedFields(),
			// Other people's Secrets are none of our business.
			ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {
				Label: labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}),
			}},
		},
		Controller:                    config.Controller{SkipNameValidation: &reused},
		Metrics:                       metricsserver.Options{BindAddress: orNone(c.MetricsAddress)},
		HealthProbeBindAddress:        orNone(c.HealthAddress),
		LeaderElection:                c.LeaderElection,
		LeaderElectionID:              leaseName,
		LeaderElectionNamespace:       c.LeaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, fmt.Errorf("make manager: %w", err)
	}
	if err := errors.Join(
		mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping),
	); err != nil {
		return nil, fmt.Errorf("add health checks: %w", err)
	}
	return mgr, nil
}

func orNone(address string) string {
	if address == "" {
		return "0"
	}
	return address
}

// clusterUID returns what tells this cluster from every other.
func clusterUID(ctx context.Context, live client.Reader) (string, error) {
	ns := &corev1.Namespace{}
	if err := live.Get(ctx, client.ObjectKey{Name: "kube-system"}, ns); err != nil {
		return "", fmt.Errorf("read the cluster's uid from namespace kube-system: %w", err)
	}
	return string(ns.UID), nil
}

// register registers all of them or none.
func register(registry ctrlmetrics.RegistererGatherer, collectors []prometheus.Collector) (unregister func(), err error) {
	var done []prometheus.Collector
	unregister = func() {
		for _, c := range done {
			registry.Unregister(c)
		}
	}
	for _, c := range collectors {
		if err := registry.Register(c); err != nil {
			unregister()
			return nil, fmt.Errorf("register metrics: %w", err)
		}
		done = append(done, c)
	}
	return unregister, nil
}
