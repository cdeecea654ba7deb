package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/fault"
)

var (
	// readyConditions are the conditions that Ready summarizes, in the order of
	// the steps that set them.
	readyConditions = []string{v1alpha1.Synced, v1alpha1.IndexReady, v1alpha1.TokensReady}
	// stalledReasons need an action by a user before the operator can proceed.
	stalledReasons = []string{v1alpha1.ReasonAdoptionRequired, v1alpha1.ReasonAdoptionRefused, v1alpha1.ReasonSecretConflict, v1alpha1.ReasonTooManyUsers,
		v1alpha1.ReasonCellNotFound, v1alpha1.ReasonCellFull, v1alpha1.ReasonCellsDisabled}
	// transientReasons resolve without an action and are not worth an event.
	transientReasons = []string{v1alpha1.ReasonNameInUse, v1alpha1.ReasonNamePurging, v1alpha1.ReasonWaiting, v1alpha1.ReasonLoading,
		v1alpha1.ReasonNotConnected}
	// expectedReasons are consequences of the spec and recorded as Normal events.
	expectedReasons = []string{v1alpha1.ReasonSuspended, v1alpha1.ReasonPurging, v1alpha1.ReasonMigrating, v1alpha1.ReasonReembedding, v1alpha1.ReasonPaused}
)

// event is an event to record at the end of the pass.
type event struct{ kind, reason, note string }

func (p *pass) recordNormal(reason, format string, args ...any) {
	p.events = append(p.events, event{corev1.EventTypeNormal, reason, fmt.Sprintf(format, args...)})
}

func (p *pass) recordWarning(reason, format string, args ...any) {
	p.events = append(p.events, event{corev1.EventTypeWarning, reason, fmt.Sprintf(format, args...)})
}

// setCondition sets a condition. Messages must not contain times or counters
// that change on their own, or every resync would write the status.
func (p *pass) setCondition(conditionType string, ok bool, reason, format string, args ...any) {
	status := metav1.ConditionFalse
	if ok {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&p.tenant.Status.Conditions, metav1.Condition{
		Type: conditionType, Status: status, Reason: reason,
		Message: fmt.Sprintf(format, args...), ObservedGeneration: p.tenant.Generation,
	})
}

// setFailed sets a condition to False because of an error.
func (p *pass) setFailed(conditionType string, err error) {
	p.setCondition(conditionType, false, reasonFor(err), "%s", publicMessage(err))
}

func (p *pass) removeCondition(conditionTypes ...string) {
	for _, t := range conditionTypes {
		meta.RemoveStatusCondition(&p.tenant.Status.Conditions, t)
	}
}

func reasonFor(err error) string {
	if fault.Is(err, fault.Unavailable) {
		return v1alpha1.ReasonUnavailable
	}
	return v1alpha1.ReasonFailed
}

// publicMessage returns the part of an error that may appear in a status: the
// messages of package fault and of the API server. The text of a driver's error
// may contain an address, a statement or a secret.
func publicMessage(err error) string {
	if e, ok := errors.AsType[*fault.Error](err); ok && e.Kind != fault.Internal {
		return e.Message
	}
	if e, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return e.ErrStatus.Message
	}
	return "internal error; see the operator's log"
}

// summarize derives Ready, Suspended, Reconciling and Stalled from the other
// conditions.
func (p *pass) summarize() {
	t := p.tenant
	t.Status.ObservedGeneration = t.Generation
	p.setSuspended()
	p.setGenerationLowered()
	var unready *metav1.Condition
	for _, name := range readyConditions {
		if meta.FindStatusCondition(t.Status.Conditions, name) == nil {
			p.setCondition(name, false, v1alpha1.ReasonWaiting, "waiting for an earlier step to succeed")
		}
		c := *meta.FindStatusCondition(t.Status.Conditions, name)
		if unready == nil && c.Status != metav1.ConditionTrue {
			unready = &c
		}
	}
	if unready == nil {
		p.setCondition(v1alpha1.Ready, true, v1alpha1.ReasonReady, "the desired state is applied")
	} else {
		p.setCondition(v1alpha1.Ready, false, unready.Reason, "%s: %s", unready.Type, unready.Message)
	}
	p.setProgress(unready)
}

// setSuspended reports spec.suspended once it is stored: until then, data
// requests are answered as before.
func (p *pass) setSuspended() {
	if !meta.IsStatusConditionTrue(p.tenant.Status.Conditions, v1alpha1.Synced) {
		return
	}
	if !p.tenant.Spec.Suspended {
		p.removeCondition(v1alpha1.Suspended)
		return
	}
	p.setCondition(v1alpha1.Suspended, true, v1alpha1.ReasonSuspended,
		"every data request is refused with 403; nothing is deleted; set spec.suspended to false to resume")
}

// setProgress sets at most one of Reconciling and Stalled, which kstatus reads
// before Ready. unready is the first condition that is not True, nil if none. A
// condition that persists keeps its transition time, so it is never removed and
// added again.
func (p *pass) setProgress(unready *metav1.Condition) {
	switch {
	case unready == nil && !p.unfinished:
		p.removeCondition(v1alpha1.Reconciling, v1alpha1.Stalled)
	case unready != nil && slices.Contains(stalledReasons, unready.Reason) && !p.unfinished:
		p.removeCondition(v1alpha1.Reconciling)
		p.setCondition(v1alpha1.Stalled, true, unready.Reason, "%s", unready.Message)
	default:
		p.removeCondition(v1alpha1.Stalled)
		p.setReconciling(unready)
	}
}

func (p *pass) setReconciling(unready *metav1.Condition) {
	reason := v1alpha1.ReasonProgressing
	if unready == nil {
		unready = meta.FindStatusCondition(p.tenant.Status.Conditions, v1alpha1.IndexReady)
	} else if unready.Reason == v1alpha1.ReasonUnavailable || unready.Reason == v1alpha1.ReasonFailed {
		reason = v1alpha1.ReasonProgressingWithRetry
	}
	p.setCondition(v1alpha1.Reconciling, true, reason, "%s", cmp.Or(p.progress, unready.Message))
}

// patchStatus writes the status if it changed, then records the events.
// conflict reports that the Tenant was changed in the meantime.
func (r *TenantReconciler) patchStatus(ctx context.Context, before *v1alpha1.Tenant, p *pass) (conflict bool, err error) {
	defer func() {
		for _, e := range p.events {
			r.recorder.Eventf(before, nil, e.kind, e.reason, "Reconcile", "%s", shorten(e.note))
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
	p.recordTransitions(before)
	return false, nil
}

// maxNote is the maximum length of the note of an event. The API server rejects longer ones.
const maxNote = 1024

// shorten returns a note that fits an event.
func shorten(note string) string {
	const ellipsis = "…"
	if len(note) <= maxNote {
		return note
	}
	end := maxNote - len(ellipsis)
	for !utf8.RuneStart(note[end]) {
		end--
	}
	return note[:end] + ellipsis
}

// isConflict reports whether the error only means that an object changed after
// it was read. The pass is repeated, and no condition reports it.
func isConflict(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// recordTransitions records an event for each condition that changed.
// Conditions other than Ready that become True are not worth one, and neither
// is a False Ready, which repeats the condition that caused it.
func (p *pass) recordTransitions(before *v1alpha1.Tenant) {
	deleting := !p.tenant.DeletionTimestamp.IsZero()
	for _, c := range p.tenant.Status.Conditions {
		old := meta.FindStatusCondition(before.Status.Conditions, c.Type)
		if old != nil && old.Status == c.Status && old.Reason == c.Reason {
			continue
		}
		switch ok := c.Status == metav1.ConditionTrue; {
		case c.Type == v1alpha1.Ready && ok, slices.Contains(expectedReasons, c.Reason):
			p.recordNormal(c.Reason, "%s", c.Message)
		case !ok && !slices.Contains(transientReasons, c.Reason) && (c.Type != v1alpha1.Ready || deleting):
			p.recordWarning(c.Reason, "%s", c.Message)
		}
	}
	wasSuspended := meta.IsStatusConditionTrue(before.Status.Conditions, v1alpha1.Suspended)
	isSuspended := meta.IsStatusConditionTrue(p.tenant.Status.Conditions, v1alpha1.Suspended)
	if wasSuspended && !isSuspended && !deleting {
		p.recordNormal("Resumed", "data requests are accepted again")
	}
}
