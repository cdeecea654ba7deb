package controllers

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// usageInterval is the minimum time between two reconciliations of a Tenant for
// which only the usage changed. The first of several changes is reported at once, the
// others together.
const usageInterval = 30 * time.Second

type requestQueue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// followChanges enqueues the Tenants that changed in the store until ctx is done.
func (r *TenantReconciler) followChanges(ctx context.Context, queue requestQueue) error {
	f := &changeFollower{TenantReconciler: r, queue: queue, next: map[tenant.ID]time.Time{}, lostAt: map[string]time.Time{}}
	go f.run(ctx)
	return nil
}

// changeFollower enqueues changed Tenants.
type changeFollower struct {
	*TenantReconciler
	queue requestQueue
	// next is when the usage of a tenant was last reported, or will be.
	next   map[tenant.ID]time.Time
	lostAt map[string]time.Time // when a lost collection was reported
	failed bool
}

// run receives from Config.Changes, which is fast, and polls the store, which misses
// nothing.
func (f *changeFollower) run(ctx context.Context) {
	tick := time.NewTicker(f.config.PollChanges)
	defer tick.Stop()
	check := time.NewTicker(f.config.CheckIndex)
	defer check.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-check.C:
			f.enqueueSamples(ctx)
		case collection := <-f.lost:
			f.enqueueLost(ctx, collection, time.Now())
		case uid := <-f.config.Changes:
			if uid == "" {
				f.enqueueMatching(ctx, all)
				continue
			}
			f.enqueue(ctx, uid, 0)
		case <-tick.C:
			f.poll(ctx)
		}
	}
}

// poll enqueues what changed since the last call. A failed call is repeated.
func (f *changeFollower) poll(ctx context.Context) {
	if f.changes == nil {
		return
	}
	limited, cancel := context.WithTimeout(ctx, 10*f.config.PollChanges)
	defer cancel()
	changes, err := f.changes.Poll(limited)
	if err != nil {
		if !f.failed && ctx.Err() == nil {
			f.config.Logger.WarnContext(ctx, "find changed tenants failed; will be retried", "error", err)
		}
		f.failed = true
		return
	}
	f.failed = false
	if changes.Reset {
		f.enqueueMatching(ctx, all)
	}
	found := true
	for _, uid := range changes.Tenants {
		found = f.enqueue(ctx, uid, 0) && found
	}
	if !found { // the data of a deleted Tenant was reassigned or purged: its name may be free now
		f.enqueueMatching(ctx, waitsForName)
	}
	f.enqueueUsage(ctx, changes.Usage, time.Now())
}

func (f *changeFollower) enqueueUsage(ctx context.Context, uids []tenant.ID, now time.Time) {
	for uid, at := range f.next {
		if now.Sub(at) > usageInterval {
			delete(f.next, uid)
		}
	}
	for _, uid := range uids {
		last, found := f.next[uid]
		switch {
		case !found:
			f.next[uid] = now
			f.enqueue(ctx, uid, 0)
		case !last.After(now):
			f.next[uid] = last.Add(usageInterval)
			f.enqueue(ctx, uid, f.next[uid].Sub(now))
		}
	}
}

// enqueue enqueues the Tenant with the uid. It returns false if this operator watches no such Tenant.
func (f *changeFollower) enqueue(ctx context.Context, uid tenant.ID, after time.Duration) bool {
	keys := f.find(ctx, uid)
	for _, key := range keys {
		f.queue.AddAfter(reconcile.Request{NamespacedName: key}, after)
	}
	return len(keys) > 0
}

// enqueueSamples enqueues one Tenant of each collection.
func (f *changeFollower) enqueueSamples(ctx context.Context) {
	sampled := map[string]bool{"": true}
	f.enqueueMatching(ctx, func(t *v1alpha1.Tenant) bool {
		collection := collectionOf(t)
		defer func() { sampled[collection] = true }()
		return !sampled[collection]
	})
}

// enqueueLost enqueues the Tenants of a lost collection, once for all of them that
// report it.
func (f *changeFollower) enqueueLost(ctx context.Context, collection string, now time.Time) {
	if last, reported := f.lostAt[collection]; reported && now.Sub(last) < f.config.CheckIndex {
		return
	}
	f.lostAt[collection] = now
	f.enqueueMatching(ctx, func(t *v1alpha1.Tenant) bool { return collectionOf(t) == collection })
}

func collectionOf(t *v1alpha1.Tenant) string {
	if t.Status.Placement == nil {
		return ""
	}
	return collectionKey(t.Status.Placement.Cell, t.Status.Placement.Collection)
}

// collectionKey identifies a collection among all cells; "" for none.
func collectionKey(cell, name string) string {
	if name == "" {
		return ""
	}
	return cell + "/" + name
}

func all(*v1alpha1.Tenant) bool { return true }

// waitsForName reports whether data of another Tenant has the Tenant's name.
func waitsForName(t *v1alpha1.Tenant) bool {
	synced := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.Synced)
	return synced != nil && slices.Contains([]string{
		v1alpha1.ReasonAdoptionRequired, v1alpha1.ReasonAdoptionRefused, v1alpha1.ReasonNameInUse, v1alpha1.ReasonNamePurging,
	}, synced.Reason)
}

// enqueueMatching enqueues Tenants after those that are known to have changed.
func (f *changeFollower) enqueueMatching(ctx context.Context, match func(*v1alpha1.Tenant) bool) {
	var list v1alpha1.TenantList
	if err := f.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		f.config.Logger.WarnContext(ctx, "list Tenants", "error", err)
		return
	}
	for i := range list.Items {
		if !match(&list.Items[i]) {
			continue
		}
		request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])}
		if q, ok := f.queue.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
			q.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, request)
		}
	}
}

// find returns the Tenant with the uid. On an error, the resync reconciles it.
func (r *TenantReconciler) find(ctx context.Context, uid tenant.ID) []types.NamespacedName {
	var list v1alpha1.TenantList
	if err := r.client.List(ctx, &list, client.MatchingFields{tenantUIDs: string(uid)}); err != nil {
		r.config.Logger.WarnContext(ctx, "find changed tenant", "uid", uid, "error", err)
		return nil
	}
	keys := make([]types.NamespacedName, 0, len(list.Items))
	for i := range list.Items {
		keys = append(keys, client.ObjectKeyFromObject(&list.Items[i]))
	}
	return keys
}
