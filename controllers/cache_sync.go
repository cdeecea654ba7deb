package controllers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
)

// syncProbe is how long a readiness probe waits for the caches.
const syncProbe = 200 * time.Millisecond

// startManager runs the manager until ctx is done, and ends it with an error if the caches
// do not sync in time.
func startManager(ctx context.Context, mgr ctrl.Manager, cancel context.CancelCauseFunc, c Config) error {
	go func() {
		limited, stop := context.WithTimeout(ctx, c.SyncTimeout)
		defer stop()
		if !mgr.GetCache().WaitForCacheSync(limited) && ctx.Err() == nil {
			cancel(&syncError{cause: findSyncProblem(ctx, mgr.GetAPIReader(), c)})
		}
	}()
	err := mgr.Start(ctx)
	if problem, ok := errors.AsType[*syncError](context.Cause(ctx)); ok {
		return errors.Join(problem, err)
	}
	return err
}

// syncError means that the caches did not sync in time.
type syncError struct{ cause error }

// Error implements error.
func (e *syncError) Error() string { return "the caches do not sync: " + e.cause.Error() }

// findSyncProblem returns which of the watched namespaces cannot be listed.
func findSyncProblem(ctx context.Context, live client.Reader, c Config) error {
	ctx, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	namespaces := c.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	var problems []error
	for _, namespace := range namespaces {
		for _, list := range []client.ObjectList{&v1alpha1.TenantList{}, &corev1.SecretList{}} {
			err := live.List(ctx, list, client.InNamespace(namespace), client.Limit(1))
			switch {
			case err == nil:
			case namespace == metav1.NamespaceAll:
				problems = append(problems, err)
			default:
				problems = append(problems, fmt.Errorf("namespace %s: %w", namespace, err))
			}
		}
	}
	if len(problems) == 0 {
		return fmt.Errorf("no response to a list within %s", c.SyncTimeout)
	}
	return errors.Join(problems...)
}

// isSynced is a readiness check: until the caches have synced, nothing is reconciled.
func isSynced(c cache.Cache) healthz.Checker {
	return func(req *http.Request) error {
		ctx, stop := context.WithTimeout(req.Context(), syncProbe)
		defer stop()
		if !c.WaitForCacheSync(ctx) {
			return errors.New("the caches have not synced")
		}
		return nil
	}
}

// newCache returns a constructor of caches for which a manager stops waiting when ctx is
// done. Otherwise, it would not end before they have synced.
func newCache(ctx context.Context) cache.NewCacheFunc {
	return func(restConfig *rest.Config, opts cache.Options) (cache.Cache, error) {
		c, err := cache.New(restConfig, opts)
		return &endingCache{Cache: c, done: ctx.Done()}, err
	}
}

type endingCache struct {
	cache.Cache
	done <-chan struct{}
}

// WaitForCacheSync implements cache.Cache. It returns true if the operator ends.
func (c *endingCache) WaitForCacheSync(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-c.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	if c.Cache.WaitForCacheSync(ctx) {
		return true
	}
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// newInformer returns a constructor of informers that treat a namespace as empty if they may
// not list it when the operator starts: the RoleBinding of one namespace is missing when it is being
// deleted, and this must not stop the operator in the others. The informer lists the namespace again
// until it is permitted. An informer that has listed it before keeps its content.
func newInformer(log *slog.Logger) func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer {
	return func(lw toolscache.ListerWatcher, o runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		if _, ok := o.(*v1alpha1.Cell); ok { // belongs to no namespace
			return toolscache.NewSharedIndexInformer(lw, o, resync, indexers)
		}
		l := &lenientLister{ListerWatcherWithContext: toolscache.ToListerWatcherWithContext(lw), log: log}
		return toolscache.NewSharedIndexInformer(
			&toolscache.ListWatch{ListWithContextFunc: l.list, WatchFuncWithContext: l.watch}, o, resync, indexers)
	}
}

type lenientLister struct {
	toolscache.ListerWatcherWithContext
	log    *slog.Logger
	listed atomic.Bool
}

func (l *lenientLister) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := l.ListWithContext(ctx, options)
	if apierrors.IsForbidden(err) && l.listed.CompareAndSwap(false, true) {
		l.log.WarnContext(ctx, "a watched namespace is missing, or its RoleBinding is; it is treated as empty and listed again until permitted", "error", err)
		return &metav1.List{}, nil
	}
	if err == nil {
		l.listed.Store(true)
	}
	return list, err
}

func (l *lenientLister) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	w, err := l.WatchWithContext(ctx, options)
	if err == nil { // the initial list may be part of a watch
		l.listed.Store(true)
	}
	return w, err
}
