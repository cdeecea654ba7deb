package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/devenv/postgres"
)

const (
	database     = "mnemo"
	ownerRole    = "mnemo_owner"
	appRole      = "mnemo_app"
	postgresPort = 5432
	milvusPort   = 19530
)

// prepareDatabase creates the database and its two roles.
func (r *release) prepareDatabase(ctx context.Context, postgres *postgres.Server) (err error) {
	r.settings = devenv.Settings{Ports: map[string]int{}, Passwords: map[string]string{}}
	for _, role := range []string{ownerRole, appRole} {
		if err := postgres.EnsureRole(ctx, role, r.settings.EnsurePassword(role)); err != nil {
			return err
		}
	}
	return postgres.EnsureDatabase(ctx, database, ownerRole)
}

// exposeStores lets pods reach both stores, which listen on 127.0.0.1.
func (c *cluster) exposeStores() error {
	address, err := c.postgres.Addr()
	if err != nil {
		return err
	}
	if err := c.node.Expose(postgresPort, address); err != nil {
		return err
	}
	return c.node.Expose(milvusPort, c.milvus.Addr)
}

// prepareNamespace creates the release's namespace, which enforces the restricted Pod
// Security Standard, and the Secrets that the chart's values refer to.
func (c *cluster) prepareNamespace(ctx context.Context) error {
	objects := []map[string]any{{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": namespace, "labels": map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}},
	}}
	for name, login := range map[string][2]string{
		"mnemo-owner":  {ownerRole, c.release.settings.EnsurePassword(ownerRole)},
		"mnemo-app":    {appRole, c.release.settings.EnsurePassword(appRole)},
		"mnemo-milvus": {c.milvus.User, c.milvus.Password},
	} {
		objects = append(objects, secret(name, "kubernetes.io/basic-auth", map[string]string{"username": login[0], "password": login[1]}))
	}
	authority, err := os.ReadFile(c.stores.TLS.File())
	if err != nil {
		return fmt.Errorf("read the stores' certificate authority: %w", err)
	}
	objects = append(objects, secret("stores-ca", "Opaque", map[string]string{"ca.crt": string(authority)}))
	for _, o := range objects {
		input, err := json.Marshal(o)
		if err != nil {
			return fmt.Errorf("encode objects: %w", err)
		}
		if _, err := c.node.Kubectl(ctx, input, "apply", "--server-side", "--filename", "-"); err != nil {
			return err
		}
	}
	return nil
}

func secret(name, kind string, data map[string]string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": kind,
		"metadata":   map[string]any{"name": name, "namespace": namespace},
		"stringData": data,
	}
}

func (c *cluster) file(name string) string { return filepath.Join(c.root, "hack", "cluster", name) }
