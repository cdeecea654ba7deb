package controllers

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/webhook"
)

// setWebhooks writes the state of the webhooks to the status.
func (p *pass) setWebhooks(all []webhookAccess) {
	old := p.tenant.Status.Webhooks
	p.tenant.Status.Webhooks = nil
	for _, a := range all {
		p.tenant.Status.Webhooks = append(p.tenant.Status.Webhooks, a.status(p.tenant, old))
	}
}

// status returns the status of the webhook after the pass.
func (a webhookAccess) status(t *v1alpha1.Tenant, old []v1alpha1.WebhookStatus) v1alpha1.WebhookStatus {
	out := v1alpha1.WebhookStatus{Name: a.Name}
	if a.err == nil {
		out.Secret, out.Fingerprint = webhookSecretName(t, a.Name), fingerprint(a.stored.Secrets[0])
		out.SecretGeneration, out.Message = a.generation(), truncate(a.failure())
		return out
	}
	if i := slices.IndexFunc(old, func(s v1alpha1.WebhookStatus) bool { return s.Name == a.Name }); i >= 0 {
		out = old[i]
	}
	switch {
	case errors.Is(a.err, errSecretConflict):
		out.Secret, out.Fingerprint = "", ""
		out.Message = truncate("Secret " + webhookSecretName(t, a.Name) + " is not owned by this Tenant")
	case !isConflict(a.err): // a conflict is retried at once and changes nothing
		out.Message = truncate(publicMessage(a.err))
	}
	return out
}

// failure says why no events are delivered, "" if they are.
func (a webhookAccess) failure() string {
	cause := a.stored.Message
	if known, _, found := strings.Cut(cause, webhook.NoResponse); found {
		cause = known + webhook.NoResponse
	}
	switch {
	case a.stored.Disabled:
		return "disabled after failed deliveries: " + cause + "; raise secretGeneration or change the webhook to enable it"
	case a.stored.Failing():
		return "failing since " + a.stored.FailingSince.UTC().Format(time.RFC3339) + ": " + cause
	case !a.stored.Connected():
		return webhook.NotConnected
	}
	return ""
}

// setWebhooksReady sets the condition from the results of the webhooks, of which there is one.
func (p *pass) setWebhooksReady(all []webhookAccess, disabled bool) error {
	var failed error
	var conflicts, failing, unconnected []string
	for _, a := range all {
		switch {
		case errors.Is(a.err, errSecretConflict):
			conflicts = append(conflicts, webhookSecretName(p.tenant, a.Name))
		case a.err != nil:
			failed = errors.Join(failed, fmt.Errorf("webhook %s: %w", a.Name, a.err))
		case !a.stored.Failing() && !a.stored.Connected():
			unconnected = append(unconnected, a.Name)
		case a.failure() != "":
			failing = append(failing, a.Name+" ("+a.failure()+")")
		}
	}
	switch {
	case errors.Is(failed, errStalled):
		p.setCondition(v1alpha1.WebhooksReady, false, v1alpha1.ReasonWaiting, "the namespace is being deleted and accepts no Secrets")
	case isConflict(failed): // the condition stays as it is
	case failed != nil:
		p.setFailed(v1alpha1.WebhooksReady, failed)
	case len(conflicts) > 0:
		p.setCondition(v1alpha1.WebhooksReady, false, v1alpha1.ReasonSecretConflict,
			"not owned by this Tenant and therefore not changed: Secret %s; delete or rename it", listSome(conflicts))
	default:
		p.setDelivery(failing, unconnected, disabled)
	}
	return failed
}

// setDelivery sets the condition when every webhook is stored.
func (p *pass) setDelivery(failing, unconnected []string, disabled bool) {
	switch {
	case disabled:
		p.setCondition(v1alpha1.WebhooksReady, false, v1alpha1.ReasonWebhooksDisabled,
			"webhooks are not enabled in this installation; events are kept and are delivered when the platform administrator enables webhooks")
	case len(failing) > 0:
		p.setCondition(v1alpha1.WebhooksReady, false, v1alpha1.ReasonDeliveryFailing, "not delivered: %s", listSome(failing))
	case len(unconnected) > 0:
		p.setCondition(v1alpha1.WebhooksReady, false, v1alpha1.ReasonNotConnected,
			"not connected yet: %s; an API server connects to the address within seconds", listSome(unconnected))
	default:
		p.setCondition(v1alpha1.WebhooksReady, true, v1alpha1.ReasonApplied, "every webhook is stored, and no delivery is failing")
	}
}
