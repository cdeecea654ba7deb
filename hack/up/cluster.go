package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	operatorNamespace = "mnemo-system"
	operatorUser      = "system:serviceaccount:" + operatorNamespace + ":mnemo-operator"
)

// sample is the Tenant of config/samples.
type sample struct {
	namespace, name string
	users           []sampleUser
}

type sampleUser struct{ name, token, password string }

// kubectl runs kubectl as the administrator and returns what it printed.
func (p *platform) kubectl(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, p.kube.Kubectl, args...)
	cmd.Dir = p.root
	cmd.Env = append(os.Environ(), "KUBECONFIG="+p.kube.Kubeconfig)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}

// prepareCluster installs the Tenant resource and the operator's rights.
func (p *platform) prepareCluster(ctx context.Context) (err error) {
	done := p.progress.Step("Tenant resource", "installing")
	defer func() { done(err) }()
	namespace := filepath.Join(p.product.dir, "namespace.yaml")
	content := "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + operatorNamespace + "}\n"
	if err := os.WriteFile(namespace, []byte(content), 0o600); err != nil {
		return fmt.Errorf("write namespace: %w", err)
	}
	for _, args := range [][]string{
		{"apply", "--server-side", "--filename", namespace},
		{"apply", "--server-side", "--kustomize", "config/crd"},
		{"apply", "--server-side", "--kustomize", "config/rbac"},
		{"wait", "--for=condition=Established", "--timeout=60s", "customresourcedefinition/tenants.mnemo.dev"},
	} {
		if _, err := p.kubectl(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// applySample applies config/samples, waits until the Tenant is Ready and reads
// its users' Secrets.
func (p *platform) applySample(ctx context.Context) (err error) {
	done := p.progress.Step("sample Tenant", "applying config/samples and waiting until it is Ready")
	defer func() { done(err) }()
	out, err := p.kubectl(ctx, "apply", "--kustomize", "config/samples", "--output", "json")
	if err != nil {
		return err
	}
	if p.sample, err = readSample(out); err != nil {
		return err
	}
	tenant := "tenant/" + p.sample.name
	if _, err = p.kubectl(ctx, "wait", "--namespace", p.sample.namespace, "--for=condition=Ready", "--timeout=120s", tenant); err != nil {
		status, _ := p.kubectl(ctx, "get", "--namespace", p.sample.namespace, tenant, "--output", "jsonpath={.status.conditions}")
		return fmt.Errorf("the sample Tenant does not become Ready, see %s/logs/mnemo-operator.log: %w\n%s", p.dir, err, status)
	}
	for i := range p.sample.users {
		if err := p.readSecret(ctx, &p.sample.users[i]); err != nil {
			return err
		}
	}
	return nil
}

// readSample finds the Tenant in what kubectl applied: an object, or a list of
// several.
func readSample(applied []byte) (sample, error) {
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
		return sample{}, fmt.Errorf("read what kubectl applied: %w", err)
	}
	for _, o := range append(list.Items, list.object) {
		if o.Kind != "Tenant" {
			continue
		}
		s := sample{namespace: o.Metadata.Namespace, name: o.Metadata.Name}
		for _, u := range o.Spec.Users {
			s.users = append(s.users, sampleUser{name: u.Name})
		}
		if len(s.users) < 2 {
			return s, fmt.Errorf("the Tenant %s in config/samples has %d users, it needs two", s.name, len(s.users))
		}
		return s, nil
	}
	return sample{}, errors.New("config/samples holds no Tenant")
}

func (p *platform) readSecret(ctx context.Context, u *sampleUser) error {
	out, err := p.kubectl(ctx, "get", "secret", "--namespace", p.sample.namespace, p.sample.name+"-"+u.name+"-access", "--output", "json")
	if err != nil {
		return err
	}
	var secret struct{ Data map[string]string }
	if err := json.Unmarshal(out, &secret); err != nil {
		return fmt.Errorf("read secret of %s: %w", u.name, err)
	}
	for key, value := range map[string]*string{"token": &u.token, "password": &u.password} {
		decoded, err := base64.StdEncoding.DecodeString(secret.Data[key])
		if err != nil || len(decoded) == 0 {
			return fmt.Errorf("the secret of %s holds no %s", u.name, key)
		}
		*value = string(decoded)
	}
	return nil
}
