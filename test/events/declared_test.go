package events_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/test/installation"
)

// signingSecret returns the secret of webhook backend of Tenant declared, "" without a Secret.
func signingSecret(t *testing.T, i *installation.Installation) string {
	t.Helper()
	s := &corev1.Secret{}
	err := i.Get(t.Context(), kube.ObjectKey{Namespace: i.Namespace, Name: "declared-backend-webhook"}, s)
	if kube.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return string(s.Data[v1alpha1.SecretSigningSecret])
}

// wantWebhooksReady waits for the status and reason of the condition.
func wantWebhooksReady(t *testing.T, i *installation.Installation, status metav1.ConditionStatus, reason string) {
	t.Helper()
	installation.Eventually(t, installation.Patience, func() string {
		tn := &v1alpha1.Tenant{}
		if err := i.Get(t.Context(), kube.ObjectKey{Namespace: i.Namespace, Name: "declared"}, tn); err != nil {
			return err.Error()
		}
		c := meta.FindStatusCondition(tn.Status.Conditions, v1alpha1.WebhooksReady)
		if c == nil || c.Status != status || c.Reason != reason {
			return fmt.Sprintf("condition %+v, want %s, %s", c, status, reason)
		}
		return ""
	})
}

// TestDeclaredWebhook works with a Tenant only: the webhook is ready after a connection, the receiver verifies with the secret
// of the Secret, the condition reports a failing endpoint, a rotation lets both secrets verify, and the
// removal of the webhook ends the delivery.
func TestDeclaredWebhook(t *testing.T) {
	t.Parallel()
	i := installation.New(t, installation.Options{})
	i.Operate(t)
	r := newReceiver(t)
	tn := i.Tenant("declared", "alice")
	tn.Spec.TokenOverlap.Duration = time.Hour
	tn.Spec.Webhooks = []v1alpha1.TenantWebhook{{Name: "backend", URL: r.URL, Events: []string{"memory.*"}}}
	i.MustCreate(t, tn)
	wantWebhooksReady(t, i, metav1.ConditionFalse, v1alpha1.ReasonNotConnected)
	first := signingSecret(t, i)
	r.setSecret(first)

	c := newClient(tokenOf(t, i, "declared", "alice"))
	server := i.Serve(t, "MNEMO_WEBHOOK_NETWORKS=127.0.0.0/8")
	wantWebhooksReady(t, i, metav1.ConditionTrue, v1alpha1.ReasonApplied) // without an event
	events := map[string]bool{}
	create(t, c, server.URL, "Delivered with the first secret", 3, events)
	r.want(events)

	r.set(http.StatusInternalServerError, nil)
	create(t, c, server.URL, "Committed while the endpoint fails", 1, events)
	wantWebhooksReady(t, i, metav1.ConditionFalse, v1alpha1.ReasonDeliveryFailing)
	r.set(http.StatusOK, nil)
	i.MustPatch(t, "declared", fmt.Sprintf(`{"spec":{"webhooks":[{"name":"backend","url":%q,"events":["memory.*"],"secretGeneration":2}]}}`, r.URL))
	r.want(events) // at once, and verified with the first secret
	wantWebhooksReady(t, i, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	second := signingSecret(t, i)
	if second == first {
		t.Fatal("the secret was not replaced")
	}
	r.setSecret(second)
	create(t, c, server.URL, "Delivered with the second secret", 2, events)
	r.want(events)

	i.MustPatch(t, "declared", `{"spec":{"webhooks":[]}}`)
	installation.Eventually(t, installation.Patience, func() string {
		if signingSecret(t, i) != "" {
			return "the Secret exists"
		}
		return ""
	})
	installation.Eventually(t, installation.Patience, func() string {
		if list := i.Run(t, "webhooks", "list", "--tenant", i.Namespace+"/declared"); strings.Contains(list, "backend") {
			return list
		}
		return ""
	})
}
