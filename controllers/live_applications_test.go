package controllers_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// key returns the key in an application's Secret, "" without a Secret.
func (l *live) key(t *testing.T, key types.NamespacedName, application string) string {
	t.Helper()
	secret := secretNamed(key.Namespace, key.Name+"-"+application+"-key")
	if err := l.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); client.IgnoreNotFound(err) != nil {
		t.Fatalf("get Secret: %v", err)
	}
	return string(secret.Data[v1alpha1.SecretToken])
}

// as sends a request with a key for a user and returns the status and body.
func (l *live) as(t *testing.T, replica int, key, user, method, path, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, l.replicas[replica]+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("X-Mnemo-User", user)
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// objects counts the objects of the namespace, except for events.
func (l *live) objects(t *testing.T, namespace string) (n int) {
	t.Helper()
	for _, list := range []client.ObjectList{&v1alpha1.TenantList{}, &corev1.SecretList{}, &corev1.ConfigMapList{}, &corev1.ServiceAccountList{}} {
		if err := l.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		switch list := list.(type) {
		case *v1alpha1.TenantList:
			n += len(list.Items)
		case *corev1.SecretList:
			n += len(list.Items)
		case *corev1.ConfigMapList:
			n += len(list.Items)
		case *corev1.ServiceAccountList:
			n += len(list.Items)
		}
	}
	return n
}

// TestLiveApplication: the operator issues a key, which acts for users who exist in the
// database only; the number of objects and the size of the status do not depend on how many
// there are. A change of the scopes and the removal of the application are effective at once
// on every replica.
func TestLiveApplication(t *testing.T) {
	t.Parallel()
	l := newLive(t, 1)
	l.operate(controllers.Config{})
	tn := types.NamespacedName{Namespace: l.namespaces[0], Name: "acme"}
	l.apply(t, tn, `{"users":[{"name":"alice"}],"quota":{"users":2001,`+unlimitedRate+`},"applications":[{"name":"web","scopes":["read","write"]}]}`)
	waitFor(t, "the key", func() bool { return l.key(t, tn, "web") != "" })
	key := l.key(t, tn, "web")
	get := func() *v1alpha1.Tenant {
		out := &v1alpha1.Tenant{}
		if err := l.Get(t.Context(), tn, out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	usersAre := func(n int64) func() bool {
		return func() bool { usage := get().Status.Usage; return usage != nil && usage.Users.Used == n }
	}
	for i := range 10 {
		if status, body := l.as(t, i%2, key, fmt.Sprint("customer/", i), "POST", "/api/memory", `{"text":"2025-05-09 likes tea"}`); status != 200 {
			t.Fatalf("store: %d %s", status, body)
		}
	}
	waitFor(t, "the usage of 10 users", usersAre(11))
	before := l.objects(t, tn.Namespace)
	who, err := l.db.Identify(t.Context(), tenant.HashSecret(key))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2000 {
		if _, err := l.db.ActFor(t.Context(), who, fmt.Sprint("customer/", i), true); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, "the usage of 2,000 users", usersAre(2001))
	if after := l.objects(t, tn.Namespace); after != before {
		t.Errorf("%d objects for 2,000 users, %d for 10", after, before)
	}
	expectSmallStatus(t, get())
	if status, body := l.as(t, 0, key, "customer/2000", "POST", "/api/memory", `{"text":"a"}`); status != 403 || !strings.Contains(body, "quota_exceeded") {
		t.Errorf("over the user quota: %d %s", status, body)
	}
	l.apply(t, tn, `{"applications":[{"name":"web","scopes":["read"]}]}`)
	for replica := range l.replicas {
		waitFor(t, "the scope", func() bool {
			status, body := l.as(t, replica, key, "customer/1", "POST", "/api/memory", `{"text":"b"}`)
			return status == 403 && strings.Contains(body, "insufficient_scope")
		})
	}
	l.apply(t, tn, `{"applications":[]}`)
	for replica := range l.replicas {
		waitFor(t, "the revocation", func() bool {
			status, _ := l.as(t, replica, key, "customer/1", "GET", "/api/memory", "")
			return status == 401
		})
	}
	waitFor(t, "the deletion of the Secret", func() bool { return l.key(t, tn, "web") == "" })
	if !usersAre(2001)() {
		t.Errorf("usage %+v after the application was removed", get().Status.Usage)
	}
}
