package sample

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
)

// Tenant is the Tenant of config/samples.
type Tenant struct {
	Namespace, Name string
	Users           []User
}

// User is a user of a Tenant with the credentials from its Secret.
type User struct{ Name, Token, Password string }

// Kubectl runs kubectl as an administrator at the top of the checkout and returns
// its output.
type Kubectl func(ctx context.Context, args ...string) ([]byte, error)

// Apply applies the Tenant, waits until it is Ready and reads its users'
// Secrets.
func Apply(ctx context.Context, kubectl Kubectl) (Tenant, error) {
	out, err := kubectl(ctx, "apply", "--kustomize", "config/samples", "--output", "json")
	if err != nil {
		return Tenant{}, err
	}
	t, err := read(out)
	if err != nil {
		return t, err
	}
	object := "tenant/" + t.Name
	if _, err := kubectl(ctx, "wait", "--namespace", t.Namespace, "--for=condition=Ready", "--timeout=120s", object); err != nil {
		status, _ := kubectl(ctx, "get", "--namespace", t.Namespace, object, "--output", "jsonpath={.status.conditions}")
		return t, fmt.Errorf("wait for the sample Tenant: %w\n%s", err, status)
	}
	for i := range t.Users {
		if err := t.readSecret(ctx, kubectl, &t.Users[i]); err != nil {
			return t, err
		}
	}
	return t, nil
}

// SignInName returns the first user's name for signing in to the dashboard.
func (t Tenant) SignInName() string { return t.Namespace + "/" + t.Name + "/" + t.Users[0].Name }

// read finds the Tenant in the output of kubectl, an object or a list of objects.
func read(applied []byte) (Tenant, error) {
	type object struct {
		Kind     string
		Metadata struct{ Name, Namespace string }
		Spec     struct{ Users []struct{ Name string } }
	}
	var list struct {
		object
		Items []object
	}
	if err := json.Unmarshal(applied, &list); err != nil {
		return Tenant{}, fmt.Errorf("read output of kubectl: %w", err)
	}
	for _, o := range append(list.Items, list.object) {
		if o.Kind != "Tenant" {
			continue
		}
		t := Tenant{Namespace: o.Metadata.Namespace, Name: o.Metadata.Name}
		for _, u := range o.Spec.Users {
			t.Users = append(t.Users, User{Name: u.Name})
		}
		if len(t.Users) < 2 {
			return t, fmt.Errorf("the Tenant %s in config/samples has %d users, but needs two", t.Name, len(t.Users))
		}
		return t, nil
	}
	return Tenant{}, errors.New("config/samples contains no Tenant")
}

func (t Tenant) readSecret(ctx context.Context, kubectl Kubectl, u *User) error {
	out, err := kubectl(ctx, "get", "secret", "--namespace", t.Namespace, t.Name+"-"+u.Name+"-access", "--output", "json")
	if err != nil {
		return err
	}
	var secret struct{ Data map[string]string }
	if err := json.Unmarshal(out, &secret); err != nil {
		return fmt.Errorf("read Secret of %s: %w", u.Name, err)
	}
	for key, value := range map[string]*string{"token": &u.Token, "password": &u.Password} {
		decoded, err := base64.StdEncoding.DecodeString(secret.Data[key])
		if err != nil || len(decoded) == 0 {
			return fmt.Errorf("the Secret of %s contains no %s", u.Name, key)
		}
		*value = string(decoded)
	}
	return nil
}
