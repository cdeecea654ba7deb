package controllers_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/webhook"
)

const (
	hookURL    = "https://acme.test/events"
	hookSecret = "acme-backend-webhook"
)

func (e *env) newTenantWithWebhook() *v1alpha1.Tenant {
	tn := e.newTenant("alice")
	tn.Spec.Webhooks = []v1alpha1.TenantWebhook{{Name: "backend", URL: hookURL, Events: []string{"memory.*"}}}
	return tn
}

// webhook returns the only declared webhook.
func (e *env) webhook(t *testing.T) webhook.Webhook {
	t.Helper()
	all, err := e.store.DeclaredWebhooks(t.Context(), e.id(t))
	if err != nil || len(all) != 1 {
		t.Fatalf("webhooks %+v, %v, want one", all, err)
	}
	return all[0]
}

// connect connects the only declared webhook, as the first delivery after a change does.
func (e *env) connect(t *testing.T) {
	t.Helper()
	w := e.webhook(t)
	w.Attempts, w.Message = 0, ""
	e.store.saveWebhook(e.id(t), w)
	e.expectReconciled(t)
}

// expectSigningSecret checks that the Secret, the store and the status agree, after a connection if none was made.
func (e *env) expectSigningSecret(t *testing.T) string {
	t.Helper()
	if !e.webhook(t).Connected() {
		e.expectCondition(t, v1alpha1.WebhooksReady, metav1.ConditionFalse, v1alpha1.ReasonNotConnected, "backend")
		e.connect(t)
	}
	s := e.secret(t, hookSecret)
	value := string(s.Data[v1alpha1.SecretSigningSecret])
	if !webhook.IsSecret(value) {
		t.Fatal("the Secret holds no signing secret")
	}
	expectEqual(t, "stored secret", e.webhook(t).Secrets[0], value)
	expectEqual(t, "keys of the Secret", len(s.Data), 1)
	expectEqual(t, "label", s.Labels[v1alpha1.LabelWebhook], "backend")
	expectEqual(t, "status", e.tenant(t).Status.Webhooks, []v1alpha1.WebhookStatus{{
		Name: "backend", Secret: hookSecret, Fingerprint: tenant.HashSecret(value).Fingerprint(),
		SecretGeneration: max(e.tenant(t).Spec.Webhooks[0].SecretGeneration, 1),
	}})
	e.expectCondition(t, v1alpha1.WebhooksReady, metav1.ConditionTrue, v1alpha1.ReasonApplied, "")
	return value
}

func TestWebhook(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.expectReady(t, e.newTenantWithWebhook())
	e.expectEvents(t, "Normal Ready")
	first := e.expectSigningSecret(t)
	expectEqual(t, "webhook", e.webhook(t).Spec, webhook.Spec{Name: "backend", URL: hookURL, Events: []string{"memory.*"}})
	e.expectNoWrites(t)

	e.mustUpdate(t, func(tn *v1alpha1.Tenant) {
		tn.Spec.Webhooks[0].URL, tn.Spec.Webhooks[0].Events = "https://acme.test/other", nil
	})
	e.expectReconciled(t)
	expectEqual(t, "secret after a change of the URL", e.expectSigningSecret(t), first)
	expectEqual(t, "webhook", e.webhook(t).Spec, webhook.Spec{Name: "backend", URL: "https://acme.test/other", Events: []string{"*"}})
	e.expectEvents(t)

	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Webhooks = nil })
	e.expectReconciled(t)
	e.expectMissing(t, &corev1.Secret{}, hookSecret)
	if all, err := e.store.DeclaredWebhooks(t.Context(), e.id(t)); err != nil || len(all) > 0 {
		t.Errorf("webhooks %+v, %v, want none", all, err)
	}
	e.expectNoCondition(t, v1alpha1.WebhooksReady)
	expectEqual(t, "status", len(e.tenant(t).Status.Webhooks), 0)
}

// The signing secret is replaced like the credentials of users, and is otherwise that of the
// Secret.
func TestWebhookRotation(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tn := e.newTenantWithWebhook()
	tn.Spec.TokenOverlap = metav1.Duration{Duration: time.Hour}
	e.expectReady(t, tn)
	e.expectEvents(t, "Normal Ready")
	last := e.expectSigningSecret(t)
	for _, c := range []struct {
		reason string
		change func()
	}{
		{"a raised secretGeneration", func() {
			e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Webhooks[0].SecretGeneration = 2 })
		}},
		{"a deleted Secret", func() { e.mustDelete(t, e.secret(t, hookSecret)) }},
		{"an invalid value", func() { e.setSigningSecret(t, "whsec_c2hvcnQ=") }},
	} {
		c.change()
		e.expectReconciled(t)
		now := e.expectSigningSecret(t)
		if now == last {
			t.Errorf("%s: the secret was not replaced", c.reason)
		}
		expectEqual(t, c.reason+": secrets that sign", e.webhook(t).Secrets, []string{now, last})
		e.expectEvents(t, "Normal SigningSecretReplaced replaced the signing secret of webhook backend")
		e.expectNoWrites(t)
		last = now
	}
	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Annotations = map[string]string{v1alpha1.AnnotationRotate: "today"} })
	if _, err := e.settle(t); err != nil {
		t.Fatal(err)
	}
	if e.expectSigningSecret(t) == last {
		t.Error("the secret was not rotated")
	}
	e.expectNoWrites(t)
	const own = "whsec_c2VjcmV0IG9mIGEgdGVzdCwgMzIgYnl0ZXMgbG9uZyE="
	e.setSigningSecret(t, own)
	e.expectReconciled(t)
	expectEqual(t, "a secret of the author", e.expectSigningSecret(t), own)
}

func (e *env) setSigningSecret(t *testing.T, value string) {
	t.Helper()
	s := e.secret(t, hookSecret)
	s.Data[v1alpha1.SecretSigningSecret] = []byte(value)
	if err := e.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

// A webhook of the command line that a Tenant names becomes the Tenant's; others stay.
func TestWebhookIsTakenOver(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.expectReady(t, e.newTenant("alice"))
	for _, name := range []string{"backend", "other"} {
		spec := webhook.Spec{Name: name, URL: "https://acme.test/old", Events: []string{"*"}}
		if err := e.store.CreateWebhook(t.Context(), e.id(t), spec, "whsec_old"); err != nil {
			t.Fatal(err)
		}
	}
	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Webhooks = e.newTenantWithWebhook().Spec.Webhooks })
	e.expectReconciled(t)
	e.expectSigningSecret(t)
	expectEqual(t, "URL", e.webhook(t).URL, hookURL)
	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Webhooks = nil })
	e.expectReconciled(t)
	if all, err := e.store.Webhooks(t.Context(), e.id(t)); err != nil || len(all) != 1 || all[0].Name != "other" {
		t.Errorf("webhooks %+v, %v, want other", all, err)
	}
}

// The condition and the status say why events are not delivered; Ready does not depend on it.
func TestWebhookDeliveryIsReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*webhook.Webhook)
		want   string // "" if nothing is reported
	}{
		"one failure":    {func(w *webhook.Webhook) { w.Attempts, w.Message = 1, "status 500" }, ""},
		"failing":        {func(w *webhook.Webhook) { w.Attempts, w.Message = 2, "status 500" }, "failing since 2026-05-04T09:00:00Z: status 500"},
		"without answer": {func(w *webhook.Webhook) { w.Attempts, w.Message = 2, "no response: dial tcp 10.0.0.1:443" }, "failing since 2026-05-04T09:00:00Z: no response"},
		"no connection": {func(w *webhook.Webhook) {
			w.Attempts, w.Message = 2, webhook.NotConnected+": no response: dial tcp 10.0.0.1:443"
		}, "failing since 2026-05-04T09:00:00Z: not connected yet: no response"},
		"disabled": {func(w *webhook.Webhook) { w.Attempts, w.Disabled, w.Message = 1, true, "status 410" }, "disabled after failed deliveries: status 410; raise"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			e.expectReady(t, e.newTenantWithWebhook())
			e.connect(t)
			w := e.webhook(t)
			w.FailingSince = time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)
			c.change(&w)
			e.store.saveWebhook(e.id(t), w)
			result := e.expectReconciled(t)
			message := e.tenant(t).Status.Webhooks[0].Message
			if c.want == "" {
				expectEqual(t, "message", message, "")
				e.expectSigningSecret(t)
				return
			}
			if !strings.HasPrefix(message, c.want) || strings.Contains(message, "10.0.0.1") {
				t.Errorf("message %q, want %q", message, c.want)
			}
			e.expectCondition(t, v1alpha1.WebhooksReady, metav1.ConditionFalse, v1alpha1.ReasonDeliveryFailing, "backend ("+c.want)
			e.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
			if result.RequeueAfter > time.Minute+6*time.Second {
				t.Errorf("the state is read again in %s", result.RequeueAfter)
			}
			e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Webhooks[0].SecretGeneration = 2 })
			e.expectReconciled(t)
			e.expectSigningSecret(t)
		})
	}
}

// A webhook is ready after a connection to its address, and not before: not after a failed attempt either.
func TestWebhookIsNotReadyBeforeItsConnection(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.expectReady(t, e.newTenantWithWebhook())
	expectNotConnected := func() {
		t.Helper()
		expectEqual(t, "message", e.tenant(t).Status.Webhooks[0].Message, "not connected yet")
		e.expectCondition(t, v1alpha1.WebhooksReady, metav1.ConditionFalse, v1alpha1.ReasonNotConnected, "backend")
		e.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
	}
	expectNotConnected()
	w := e.webhook(t)
	w.Attempts, w.Message = 1, webhook.NotConnected+": no response: dial tcp 10.0.0.1:443"
	e.store.saveWebhook(e.id(t), w)
	e.expectReconciled(t)
	expectNotConnected()
	e.connect(t)
	e.expectSigningSecret(t)

	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Webhooks[0].URL = "https://acme.test/other" })
	e.expectReconciled(t)
	expectNotConnected()
	e.connect(t)
	s := e.secret(t, hookSecret)
	s.Labels = nil
	if err := e.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.WebhooksReady, metav1.ConditionTrue, v1alpha1.ReasonApplied, "") // the webhook did not change
}

func TestWebhooksAreDisabled(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.use(t, controllers.Config{WebhooksDisabled: true})
	e.expectReady(t, e.newTenantWithWebhook())
	e.expectCondition(t, v1alpha1.WebhooksReady, metav1.ConditionFalse, v1alpha1.ReasonWebhooksDisabled, "webhooks are not enabled in this installation")
	e.webhook(t) // it is stored
}

// Nothing is stored for a webhook without a Secret.
func TestWebhookSecretConflict(t *testing.T) {
	t.Parallel()
	e := setup(t)
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: hookSecret}, Data: map[string][]byte{"a": []byte("b")}}
	e.mustCreate(t, foreign)
	e.expectReady(t, e.newTenantWithWebhook())
	e.expectCondition(t, v1alpha1.WebhooksReady, metav1.ConditionFalse, v1alpha1.ReasonSecretConflict, hookSecret)
	expectEqual(t, "status", e.tenant(t).Status.Webhooks, []v1alpha1.WebhookStatus{
		{Name: "backend", Message: "Secret " + hookSecret + " is not owned by this Tenant"},
	})
	expectEqual(t, "the foreign Secret", len(e.secret(t, hookSecret).Data), 1)
	if all, err := e.store.DeclaredWebhooks(t.Context(), e.id(t)); err != nil || len(all) > 0 {
		t.Errorf("webhooks %+v, %v, want none", all, err)
	}
	e.mustDelete(t, e.secret(t, hookSecret))
	e.expectReconciled(t)
	e.expectSigningSecret(t)
}

// A failed write of the Secret or of the store is reported, and repaired by the next pass with
// one secret.
func TestWebhookCannotBeStored(t *testing.T) {
	t.Parallel()
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, hookSecret, errors.New("exceeded quota: secrets"))
	for name, c := range map[string]struct {
		fail   func(*env)
		reason string
	}{
		"the Secret": {func(e *env) { e.secretWrite = func(string) error { return refused } }, v1alpha1.ReasonFailed},
		"the store": {func(e *env) {
			e.store.failIf(func(method string) error {
				if method == "DeclareWebhook" {
					return errPostgresUnavailable
				}
				return nil
			})
		}, v1alpha1.ReasonUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			e.expectReady(t, e.newTenant("alice"))
			c.fail(e)
			e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Webhooks = e.newTenantWithWebhook().Spec.Webhooks })
			if _, err := e.reconcile(t); err == nil {
				t.Error("Reconcile did not return the error")
			}
			e.expectCondition(t, v1alpha1.WebhooksReady, metav1.ConditionFalse, c.reason, "")
			if got := e.tenant(t).Status.Webhooks; len(got) != 1 || got[0].Message == "" {
				t.Errorf("status %+v, want a message", got)
			}
			e.secretWrite = nil
			e.store.heal()
			e.expectReconciled(t)
			e.expectSigningSecret(t)
			expectEqual(t, "secrets that sign", len(e.webhook(t).Secrets), 1)
		})
	}
}

func TestDeletedTenantWithWebhook(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.expectReady(t, e.newTenantWithWebhook())
	id, tn := e.id(t), e.tenant(t)
	e.mustDelete(t, tn)
	e.expectReconciled(t)
	e.expectMissing(t, &corev1.Secret{}, hookSecret)
	if all, err := e.store.DeclaredWebhooks(t.Context(), id); err != nil || len(all) > 0 {
		t.Errorf("webhooks %+v, %v, want none", all, err)
	}
}

// The schema accepts every event that exists, in lists of the maximum length.
func TestSchemaAcceptsEveryEvent(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tn := e.newTenantWithWebhook()
	hook := tn.Spec.Webhooks[0]
	tn.Spec.Webhooks = nil
	for names := range slices.Chunk(webhook.Events, 50) {
		hook.Name, hook.Events = fmt.Sprintf("hook%d", len(tn.Spec.Webhooks)), names
		tn.Spec.Webhooks = append(tn.Spec.Webhooks, hook)
	}
	e.expectReady(t, tn)
}
