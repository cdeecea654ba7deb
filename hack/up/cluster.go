package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/mnemo-dev/mnemo/hack/sample"
)

const (
	operatorNamespace = "mnemo-system"
	operatorUser      = "system:serviceaccount:" + operatorNamespace + ":mnemo-operator"
)

// kubectl runs kubectl as the administrator and returns its output.
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
		// The second wait fails if there are no conditions yet.
		{"wait", "--for=jsonpath={.status.conditions}", "--timeout=60s", "customresourcedefinition/tenants.mnemo.dev"},
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
	if p.sample, err = sample.Apply(ctx, p.kubectl); err != nil {
		return fmt.Errorf("see %s/logs/mnemo-operator.log: %w", p.dir, err)
	}
	return nil
}
