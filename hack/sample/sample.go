// Package sample applies the Tenant of config/samples. `make up` and `make
// cluster` print the credentials of its users.
package sample

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
)

// readyTimeout bounds the wait for the Tenant.
const readyTimeout = 2 * time.Minute

// Tenant is the Tenant of config/samples.
type Tenant struct {
	Namespace, Name string
	Users           []User
}

// User is a user of a Tenant with the credentials from its Secret.
type User struct{ Name, Token, Password string }

// Apply applies the Tenant of the checkout at root, waits until it is Ready and
// reads its users' Secrets.
func Apply(ctx context.Context, c client.Client, root string) (Tenant, error) {
	applied, err := ApplyKustomization(ctx, c, filepath.Join(root, "config", "samples"))
	if err != nil {
		return Tenant{}, err
	}
	t, err := find(applied)
	if err != nil {
		return t, err
	}
	if err := t.waitReady(ctx, c); err != nil {
		return t, err
	}
	for i := range t.Users {
		if err := t.readSecret(ctx, c, &t.Users[i]); err != nil {
			return t, err
		}
	}
	return t, nil
}

// SignInName returns the first user's name for signing in to the dashboard.
func (t Tenant) SignInName() string { return t.Namespace + "/" + t.Name + "/" + t.Users[0].Name }

// find returns the Tenant among the objects.
func find(objects []unstructured.Unstructured) (Tenant, error) {
	for _, o := range objects {
		if o.GetKind() != "Tenant" {
			continue
		}
		var tn v1alpha1.Tenant
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &tn); err != nil {
			return Tenant{}, fmt.Errorf("read Tenant: %w", err)
		}
		t := Tenant{Namespace: tn.Namespace, Name: tn.Name}
		for _, u := range tn.Spec.Users {
			t.Users = append(t.Users, User{Name: u.Name})
		}
		if len(t.Users) < 2 {
			return t, fmt.Errorf("the Tenant %s in config/samples has %d users, but needs two", t.Name, len(t.Users))
		}
		return t, nil
	}
	return Tenant{}, errors.New("config/samples contains no Tenant")
}

// waitReady waits until the operator has reconciled the applied spec and the Tenant is
// Ready.
func (t Tenant) waitReady(ctx context.Context, c client.Client) error {
	var tn v1alpha1.Tenant
	err := wait.PollUntilContextTimeout(ctx, 250*time.Millisecond, readyTimeout, true, func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: t.Name}, &tn); err != nil {
			return false, err
		}
		ready := meta.FindStatusCondition(tn.Status.Conditions, v1alpha1.Ready)
		return ready != nil && ready.Status == "True" && ready.ObservedGeneration == tn.Generation, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the sample Tenant: %w; conditions: %+v", err, tn.Status.Conditions)
	}
	return nil
}

func (t Tenant) readSecret(ctx context.Context, c client.Client, u *User) error {
	var secret corev1.Secret
	if err := c.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: t.Name + "-" + u.Name + "-access"}, &secret); err != nil {
		return fmt.Errorf("read Secret of %s: %w", u.Name, err)
	}
	for key, value := range map[string]*string{v1alpha1.SecretToken: &u.Token, "password": &u.Password} {
		if len(secret.Data[key]) == 0 {
			return fmt.Errorf("the Secret of %s contains no %s", u.Name, key)
		}
		*value = string(secret.Data[key])
	}
	return nil
}
