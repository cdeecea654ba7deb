// Command controllers runs the Kubernetes controllers that a control plane
// without nodes needs: garbage collection by owner references, deletion of
// namespaces, and their default service accounts.
//
// It replaces kube-controller-manager, which has about 50 controllers and takes
// five times as long to build. The controllers share the identity in -kubeconfig,
// which must be an administrator's.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
)

const (
	workers = 10
	resync  = 12 * time.Hour
	// discoverEvery is how often the garbage collector looks for new resource
	// types.
	discoverEvery = 30 * time.Second
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "path of an administrator's kubeconfig")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig); err != nil {
		fmt.Fprintln(os.Stderr, "controllers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS, config.Burst = 400, 2000
	c, err := newControllers(config)
	if err != nil {
		return err
	}
	if err := c.start(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

type controllers struct {
	client    kubernetes.Interface
	metadata  metadata.Interface
	informers informers.SharedInformerFactory
	objects   informerfactory.InformerFactory
}

func newControllers(config *rest.Config) (*controllers, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("build client: %w", err)
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("build metadata client: %w", err)
	}
	shared := informers.NewSharedInformerFactory(client, resync)
	return &controllers{
		client: client, metadata: meta, informers: shared,
		objects: informerfactory.NewInformerFactory(shared, metadatainformer.NewSharedInformerFactory(meta, resync)),
	}, nil
}

func (c *controllers) start(ctx context.Context) error {
	accounts, err := serviceaccount.NewServiceAccountsController(klog.FromContext(ctx),
		c.informers.Core().V1().ServiceAccounts(), c.informers.Core().V1().Namespaces(), c.client,
		serviceaccount.DefaultServiceAccountsControllerOptions())
	if err != nil {
		return fmt.Errorf("build service account controller: %w", err)
	}
	namespaces := namespace.NewNamespaceController(ctx, c.client, c.metadata, c.client.Discovery().ServerPreferredNamespacedResources,
		c.informers.Core().V1().Namespaces(), resync, corev1.FinalizerKubernetes)

	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.client.Discovery()))
	started := make(chan struct{})
	graph := garbagecollector.NewDependencyGraphBuilder(ctx, c.metadata, mapper, garbagecollector.DefaultIgnoredResources(), c.objects, started)
	garbage, err := garbagecollector.NewComposedGarbageCollector(ctx, c.client, c.metadata, mapper, graph)
	if err != nil {
		return fmt.Errorf("build garbage collector: %w", err)
	}

	go accounts.Run(ctx, workers)
	go namespaces.Run(ctx, workers)
	go garbage.Run(ctx, workers, discoverEvery)
	go garbage.Sync(ctx, c.client.Discovery(), discoverEvery)
	c.objects.Start(ctx.Done())
	close(started)
	return nil
}
