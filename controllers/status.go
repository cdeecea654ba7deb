package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/fault"
)

// parts are the conditions Ready is made of, in the order of the steps.
var parts = []string{v1alpha1.QuotaReady, v1alpha1.PartitionReady, v1alpha1.TokensReady}

// passing are reasons that are worth no event though something is not ready.
var passing = []string{v1alpha1.ReasonWaiting, v1alpha1.ReasonLoading}

// asWanted are reasons that are worth an event though nothing is wrong.
var asWanted = []string{v1alpha1.ReasonSuspended, v1alpha1.ReasonPurging, v1alpha1.ReasonMoving, v1alpha1.ReasonPaused}

// event is one to record at the end of the pass.
type event struct{ kind, reason, note string }

func (p *pass) note(reason, format string, args ...any) {
	p.events = append(p.events, event{corev1.EventTypeNormal, reason, fmt.Sprintf(format, args...)})
}

func (p *pass) warn(reason, format string, args ...any) {
	p.events = append(p.events, event{corev1.EventTypeWarning, reason, fmt.Sprintf(format, args...)})
}

// set notes a condition. Its message has no times or counters that move by
// themselves, or each resync would write the status.
func (p *pass) set(condition string, ok bool, reason, format string, args ...any) {
	status := metav1.ConditionFalse
	if ok {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&p.tenant.Status.Conditions, metav1.Condition{
		Type: condition, Status: status, Reason: reason,
		Message: fmt.Sprintf(format, args...), ObservedGeneration: p.tenant.Generation,
	})
}

// fail notes a condition that an error makes False.
func (p *pass) fail(condition string, err error) {
	p.set(condition, false, reasonOf(err), "%s", shown(err))
}

func reasonOf(err error) string {
	if fault.Is(err, fault.Unavailable) {
		return v1alpha1.ReasonUnavailable
	}
	return v1alpha1.ReasonFailed
}

// shown returns what of an error a person may read in a status: the messages
// written for people and the API server's, never a cause from a driver, which
// may hold an address, a statement or a secret.
func shown(err error) string {
	if e, ok := errors.AsType[*fault.Error](err); ok && e.Kind != fault.Internal {
		return e.Message
	}
	if e, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return e.ErrStatus.Message
	}
	return "an internal error, which the operator's log describes"
}

// summarize makes Ready of the other conditions.
func (p *pass) summarize() {
	t := p.tenant
	t.Status.ObservedGeneration = t.Generation
	var bad *metav1.Condition
	for _, name := range parts {
		if meta.FindStatusCondition(t.Status.Conditions, name) == nil {
			p.set(name, false, v1alpha1.ReasonWaiting, "an earlier step has to succeed first")
		}
		c := *meta.FindStatusCondition(t.Status.Conditions, name)
		if bad == nil && c.Status != metav1.ConditionTrue {
			bad = &c
		}
	}
	if bad != nil {
		p.set(v1alpha1.Ready, false, bad.Reason, "%s: %s", bad.Type, bad.Message)
		return
	}
	if t.Spec.Suspended {
		p.set(v1alpha1.Ready, false, v1alpha1.ReasonSuspended,
			"every data request is answered 403 and nothing is deleted, until spec.suspended is false")
		return
	}
	p.set(v1alpha1.Ready, true, v1alpha1.ReasonReady, "the tenant can be used")
}

// patchStatus writes the status if it changed and then records the events.
// again says that the Tenant was changed meanwhile and is to be looked at anew.
func (r *TenantReconciler) patchStatus(ctx context.Context, before *v1alpha1.Tenant, p *pass) (again bool, err error) {
	defer func() {
		for _, e := range p.events {
			r.recorder.Eventf(before, nil, e.kind, e.reason, "Reconcile", "%s", e.note)
		}
	}()
	if !equality.Semantic.DeepEqual(before.Status, p.tenant.Status) {
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		switch err := r.client.Status().Patch(ctx, p.tenant, patch); {
		case apierrors.IsNotFound(err):
			return false, nil
		case apierrors.IsConflict(err):
			return true, nil
		case err != nil:
			return false, fmt.Errorf("patch status: %w", err)
		}
	}
	p.transitions(before)
	return false, nil
}

// retried reports whether the error only says that something changed under our
// hands: looking again is all there is to do, and nobody needs to hear of it.
func retried(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// transitions adds an event for each condition that turned, but none for parts
// that were well from the start.
func (p *pass) transitions(before *v1alpha1.Tenant) {
	for _, c := range p.tenant.Status.Conditions {
		was := meta.FindStatusCondition(before.Status.Conditions, c.Type)
		if was != nil && was.Status == c.Status && was.Reason == c.Reason {
			continue
		}
		switch ok := c.Status == metav1.ConditionTrue; {
		case c.Type == v1alpha1.Ready && ok, slices.Contains(asWanted, c.Reason):
			p.note(c.Reason, "%s", c.Message)
		case !ok && !slices.Contains(passing, c.Reason) && (c.Type != v1alpha1.Ready || !p.tenant.DeletionTimestamp.IsZero()):
			p.warn(c.Reason, "%s", c.Message) // Ready only repeats what a part says
		}
	}
}
