package controllers

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/webhook"
)

// The operator generates the signing secret of a webhook and writes it to a Secret, which
// decides: the store gets a copy, because the API servers sign with it. So a crash between the
// two writes, and a restored database, are repaired by the next pass.

// webhookAccess is a webhook of the spec with its state.
type webhookAccess struct {
	v1alpha1.TenantWebhook
	stored  webhook.Webhook // without a name if there is none
	secret  *corev1.Secret  // without values; nil if the cache has none
	current int64           // generation of the current signing secret, 0 if there is none
	err     error           // why it could not be stored
}

// webhookSecretName returns the name of a webhook's Secret, unique like that of a user's.
func webhookSecretName(t *v1alpha1.Tenant, name string) string {
	return t.Name + "-" + name + "-webhook"
}

// ensureWebhooks stores the webhooks of the spec with the secrets in their Secrets, and deletes
// the stored ones that are not listed. ensureTokens deletes their Secrets.
func (r *TenantReconciler) ensureWebhooks(ctx context.Context, p *pass) error {
	stored, err := r.webhooks.DeclaredWebhooks(ctx, p.stored.ID)
	if err == nil {
		err = r.deleteUnlisted(ctx, p, stored)
	}
	var secrets map[string]*corev1.Secret
	if err == nil && len(p.tenant.Spec.Webhooks) > 0 {
		secrets, err = r.secretsByName(ctx, p.tenant)
	}
	if len(p.tenant.Spec.Webhooks) == 0 {
		p.tenant.Status.Webhooks = nil
		p.removeCondition(v1alpha1.WebhooksReady)
		return err
	}
	if err != nil {
		p.setFailed(v1alpha1.WebhooksReady, err)
		return err
	}
	all := make([]webhookAccess, 0, len(p.tenant.Spec.Webhooks))
	for _, w := range p.tenant.Spec.Webhooks {
		a := webhookAccess{TenantWebhook: w, secret: secrets[webhookSecretName(p.tenant, w.Name)], current: p.webhookGeneration(w.Name)}
		if i := slices.IndexFunc(stored, func(s webhook.Webhook) bool { return s.Name == w.Name }); i >= 0 {
			a.stored = stored[i]
		}
		if !a.isUpToDate(p.tenant) {
			a.err = r.ensureWebhook(ctx, p, &a)
		}
		all = append(all, a)
	}
	p.setWebhooks(all)
	return p.setWebhooksReady(all, r.config.WebhooksDisabled)
}

func (r *TenantReconciler) deleteUnlisted(ctx context.Context, p *pass, stored []webhook.Webhook) error {
	for _, s := range stored {
		if slices.ContainsFunc(p.tenant.Spec.Webhooks, func(w v1alpha1.TenantWebhook) bool { return w.Name == s.Name }) {
			continue
		}
		if err := r.webhooks.DeleteDeclaredWebhook(ctx, p.stored.ID, s.Name); err != nil {
			return fmt.Errorf("delete webhook: %w", err)
		}
	}
	return nil
}

// spec returns the webhook to store.
func (a webhookAccess) spec() webhook.Spec {
	events := a.Events
	if len(events) == 0 {
		events = []string{"*"}
	}
	return webhook.Spec{Name: a.Name, URL: a.URL, Events: events}
}

// generation returns the desired generation of the signing secret: that of the spec, but never less than the current one.
func (a webhookAccess) generation() int64 { return max(a.SecretGeneration, a.current, 1) }

// isUpToDate reports whether ensureWebhook would change nothing.
func (a webhookAccess) isUpToDate(t *v1alpha1.Tenant) bool {
	if a.secret == nil || len(a.stored.Secrets) == 0 || a.isSecretDue(t, a.secret) {
		return false
	}
	current := fingerprint(a.stored.Secrets[0])
	desired := a.secret.DeepCopy()
	setWebhookMetadata(t, a, desired, current)
	return a.secret.StringData[v1alpha1.SecretSigningSecret] == current && equality.Semantic.DeepEqual(a.secret, desired) &&
		equality.Semantic.DeepEqual(a.stored.Spec, a.spec())
}

// isSecretDue reports whether the signing secret is to be replaced.
func (a webhookAccess) isSecretDue(t *v1alpha1.Tenant, secret *corev1.Secret) bool {
	value := rotation(t)
	return generationIn(secret, v1alpha1.AnnotationSecretGeneration) < a.generation() ||
		value != "" && secret.Annotations[v1alpha1.AnnotationRotated] != value
}

// ensureWebhook brings the Secret and then the stored webhook up to date.
func (r *TenantReconciler) ensureWebhook(ctx context.Context, p *pass, a *webhookAccess) error {
	// The cache may be stale, and it holds no values.
	secret, err := r.readSecret(ctx, p.tenant, webhookSecretName(p.tenant, a.Name))
	if err != nil {
		return err
	}
	desired, err := r.webhookSecret(p.tenant, *a, secret)
	if err != nil {
		return err
	}
	if !equality.Semantic.DeepEqual(secret, desired) {
		if err := r.writeSecret(ctx, secret == nil, desired, false); err != nil {
			return err
		}
	}
	value := string(desired.Data[v1alpha1.SecretSigningSecret])
	if err := r.webhooks.DeclareWebhook(ctx, p.stored.ID, a.spec(), value, p.tenant.Spec.TokenOverlap.Duration); err != nil {
		return fmt.Errorf("store webhook: %w", err)
	}
	if len(a.stored.Secrets) > 0 && a.stored.Secrets[0] != value {
		p.recordNormal("SigningSecretReplaced", "replaced the signing secret of webhook %s", a.Name)
	}
	if len(a.stored.Secrets) == 0 || a.stored.Secrets[0] != value || !equality.Semantic.DeepEqual(a.stored.Spec, a.spec()) {
		a.stored = webhook.Webhook{Spec: a.spec(), Secrets: []string{value}, Message: webhook.NotConnected}
	}
	a.secret = withoutValues(desired)
	return nil
}

// webhookSecret returns a copy of the Secret, or a new one if nil, with a valid signing secret:
// the one in it unless that is to be replaced.
func (r *TenantReconciler) webhookSecret(t *v1alpha1.Tenant, a webhookAccess, secret *corev1.Secret) (*corev1.Secret, error) {
	desired := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: webhookSecretName(t, a.Name)},
		Type:       corev1.SecretTypeOpaque,
	}
	if secret != nil {
		desired = secret.DeepCopy()
	}
	value := string(desired.Data[v1alpha1.SecretSigningSecret])
	if !webhook.IsSecret(value) || a.isSecretDue(t, desired) {
		var err error
		if value, err = webhook.NewSecret(r.config.Random); err != nil {
			return nil, err //nolint:wrapcheck // says what it did
		}
	}
	setWebhookMetadata(t, a, desired, fingerprint(value))
	if desired.Data == nil {
		desired.Data = map[string][]byte{}
	}
	desired.Data[v1alpha1.SecretSigningSecret] = []byte(value)
	if err := controllerutil.SetControllerReference(t, desired, r.client.Scheme()); err != nil {
		return nil, fmt.Errorf("own Secret: %w", err)
	}
	return desired, nil
}

// setWebhookMetadata sets the labels and annotations of a webhook's Secret.
func setWebhookMetadata(t *v1alpha1.Tenant, a webhookAccess, s *corev1.Secret, fingerprint string) {
	setAll(&s.Labels, map[string]string{
		v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, v1alpha1.LabelTenant: t.Name, v1alpha1.LabelWebhook: a.Name,
	})
	setAll(&s.Annotations, map[string]string{
		v1alpha1.AnnotationSecretGeneration: strconv.FormatInt(a.generation(), 10), v1alpha1.AnnotationFingerprint: fingerprint,
	})
	if value := rotation(t); value != "" {
		s.Annotations[v1alpha1.AnnotationRotated] = value
	}
}
