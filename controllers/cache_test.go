package controllers

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// TestForeignSecretsAreNotCached: in a namespace with 500 foreign Secrets, the
// cache holds only the operator's, without values, whether it watches one namespace
// or all.
func TestForeignSecretsAreNotCached(t *testing.T) {
	t.Parallel()
	config := testkit.KubeConfig(t)
	config.QPS = -1
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "cached-"}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(context.Background(), ns) })
	createForeignSecrets(t, c, ns.Name)
	ours := secretWithLabels(ns.Name, "ours", map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue})
	ours.Data = map[string][]byte{"token": []byte("s3cret-t0ken"), "password": []byte("s3cret-passw0rd"), "url": []byte("https://mnemo.test"),
		"mcpUrl": []byte("https://mnemo.test/mcp"), "signInName": []byte("acme/alice"), "signingSecret": []byte("s3cret-signing"), "other": []byte("s3cret-other")}
	if err := c.Create(t.Context(), ours); err != nil {
		t.Fatal(err)
	}
	for name, namespaces := range map[string][]string{"all": nil, "one": {ns.Name}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mgr, err := newManager(t.Context(), config, Config{Namespaces: namespaces, Logger: slog.New(slog.DiscardHandler)}.withDefaults())
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			ctx, stop := context.WithCancel(t.Context())
			go func() { done <- mgr.GetCache().Start(ctx) }()
			t.Cleanup(func() {
				stop()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
			if !mgr.GetCache().WaitForCacheSync(t.Context()) {
				t.Fatal("the cache did not sync")
			}
			var cached corev1.SecretList // the first list fills the cache
			if err := mgr.GetClient().List(t.Context(), &cached, client.InNamespace(ns.Name)); err != nil {
				t.Fatal(err)
			}
			if len(cached.Items) != 1 {
				t.Fatalf("len(cached.Items) = %d, want 1", len(cached.Items))
			}
			if cached.Items[0].Name != "ours" {
				t.Errorf(`cached.Items[0].Name = %q, want "ours"`, cached.Items[0].Name)
			}
			expectNoValues(t, &cached.Items[0])
			err = mgr.GetClient().Get(t.Context(), client.ObjectKey{Namespace: ns.Name, Name: "foreign-0"}, &corev1.Secret{})
			if !apierrors.IsNotFound(err) {
				t.Errorf("get a foreign Secret from the cache: got error %v, want NotFound", err)
			}
		})
	}
}

// expectNoValues checks that a cached Secret holds fingerprints and no credentials, and
// cannot be written.
func expectNoValues(t *testing.T, s *corev1.Secret) {
	t.Helper()
	if raw := fmt.Sprint(s); strings.Contains(raw, "s3cret") || len(s.Data) > 0 {
		t.Errorf("the cache holds values: %s", raw)
	}
	want := map[string]string{
		"token": tenant.HashSecret("s3cret-t0ken").Fingerprint(), "password": tenant.HashSecret("s3cret-passw0rd").Fingerprint(),
		"url": "https://mnemo.test", "mcpUrl": "https://mnemo.test/mcp", "signInName": "acme/alice",
		"signingSecret": tenant.HashSecret("s3cret-signing").Fingerprint(),
	}
	if !maps.Equal(s.StringData, want) {
		t.Errorf("the cache holds %v, want %v", s.StringData, want)
	}
	if err := new(TenantReconciler).writeSecret(t.Context(), false, s, false); err == nil {
		t.Error("a Secret without values was written")
	}
}

func createForeignSecrets(t *testing.T, c client.Client, ns string) {
	t.Helper()
	var wait sync.WaitGroup
	for worker := range 8 {
		wait.Go(func() {
			for n := worker; n < 500; n += 8 {
				// With the label of another program, and without.
				labels := map[string]string{v1alpha1.LabelManagedBy: "helm"}
				if n%2 == 0 {
					labels = nil
				}
				if err := c.Create(t.Context(), secretWithLabels(ns, fmt.Sprint("foreign-", n), labels)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
}

func secretWithLabels(ns, name string, labels map[string]string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: labels},
		Data:       map[string][]byte{"theirs": make([]byte, 1024)},
	}
}
