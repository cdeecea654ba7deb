package cluster_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/api/client"
	"github.com/mnemo-dev/mnemo/controllers"
)

// trialHome is the namespace docs/install.md tries it in.
const trialHome = "mnemo"

// trial is `demo: true` on the node.
type trial struct {
	images    string // what Helm's --set is given: nobody serves ours
	passwords string
	user      *client.Client
}

// TestTrial follows "Try it" of docs/install.md, the chart with bundled stores, on the
// cluster that TestLife has left.
func TestTrial(t *testing.T) {
	d := &trial{}
	steps := []struct {
		name string
		run  func(t *testing.T)
	}{
		{"alone on the cluster, with images", d.prepare},
		{"installed", func(t *testing.T) {
			d.helm(t, "install", "mnemo", "charts/mnemo", "--take-ownership", "--set", "demo=true", "--set", "embeddings.mode=local", "--set", d.images,
				"--wait", "--timeout", "5m")
			d.passwords = d.secrets(t)
		}},
		{"a customer stores a memory and finds it by meaning", func(t *testing.T) {
			d.customer(t)
			d.remember(t)
		}},
		{"helm test", func(t *testing.T) { d.helm(t, "test", "mnemo") }},
		{"the superuser signs in to PostgreSQL from nowhere else", d.superuser},
		{"lost with PostgreSQL's pod, and empty after an upgrade, on volumes from now on", d.lost},
		{"kept when PostgreSQL's pod goes, and by an upgrade", d.kept},
		{"uninstalled", d.uninstalled},
	}
	for _, step := range steps {
		if !t.Run(step.name, step.run) {
			return // what follows would only fail too
		}
	}
}

func (d *trial) helm(t *testing.T, args ...string) {
	t.Helper()
	if _, err := try(t.Context(), "", "hack/tool.sh", append([]string{"helm", "--namespace", trialHome}, args...)...); err != nil {
		t.Fatal(err)
	}
}

// prepare takes the release away that is there when this test runs alone, and
// makes a namespace that enforces the strictest standard for pods.
func (d *trial) prepare(t *testing.T) {
	if kubectl(t, "", "get", "deployments", "--namespace", namespace, "--output", "name") != "" {
		kubectl(t, "", "annotate", "deployment", "mnemo-operator", "--namespace", namespace, controllers.ReleaseAnnotation+"=true")
		helm(t, "uninstall", "mnemo", "--wait", "--timeout", "3m")
	}
	kubectl(t, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+trialHome+`","labels":{
		"pod-security.kubernetes.io/enforce":"restricted"}}}`, "create", "--filename", "-")
	images, err := try(t.Context(), "", cluster.program, "demo", "-dir", cluster.dir)
	if err != nil {
		t.Fatal(err)
	}
	d.images = strings.TrimSpace(images)
}

// customer makes one as the chart's notes say and signs in as its user.
func (d *trial) customer(t *testing.T) {
	t.Helper()
	kubectl(t, `{"apiVersion":"mnemo.dev/v1alpha1","kind":"Tenant","metadata":{"name":"acme","namespace":"`+trialHome+`"},
		"spec":{"displayName":"Acme","users":[{"name":"alice","email":"alice@acme.test"}]}}`, "apply", "--filename", "-")
	kubectl(t, "", "wait", "--namespace", trialHome, "--for=condition=Ready", "tenant/acme", "--timeout=3m")
	d.signIn(t)
}

// signIn takes the token that the user's Secret has now.
func (d *trial) signIn(t *testing.T) {
	t.Helper()
	token := kubectl(t, "", "get", "secret", "acme-alice-access", "--namespace", trialHome, "--output", "go-template={{.data.token | base64decode}}")
	address := kubectl(t, "", "get", "service", "mnemo", "--namespace", trialHome, "--output", "jsonpath={.spec.clusterIP}")
	var err error
	if d.user, err = client.New("http://"+address, token); err != nil {
		t.Fatal(err)
	}
}

// remember stores a memory and finds it by other words, in Milvus.
func (d *trial) remember(t *testing.T) {
	t.Helper()
	const text = "2026-11-20 My sister Ana moved to Lisbon."
	if _, err := d.user.CreateMemory(t.Context(), nil, client.CreateMemoryRequest{Text: text}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 3*time.Minute, func() string { return d.found(t) })
}

// found returns what is wrong with the answer to a question about the memory.
func (d *trial) found(t *testing.T) string {
	t.Helper()
	query := "which city does my sibling live in?"
	answer, err := d.user.ListMemories(t.Context(), &client.ListMemoriesParams{Query: &query})
	if err != nil {
		return err.Error()
	}
	if n := len(answer.Body.Memories); n != 1 || answer.Degraded() {
		return fmt.Sprintf("%d memories are found, degraded: %t; want one, by the vector store", n, answer.Degraded())
	}
	return ""
}

// superuser: the password that PostgreSQL's image asks for is good for nothing.
func (d *trial) superuser(t *testing.T) {
	psql := func(role, password string) error {
		_, err := try(t.Context(), "", cluster.env["KUBECTL"], "exec", "--namespace", trialHome, "deployment/mnemo-demo-postgres", "--",
			"bash", "-c", `PGPASSWORD="$`+password+`" psql --host mnemo-demo-postgres --username `+role+` --dbname mnemo --command "select 1"`)
		return err
	}
	if err := psql("mnemo_app", "APP_PASSWORD"); err != nil {
		t.Errorf("the app's role: %v", err)
	}
	if err := psql("postgres", "POSTGRES_PASSWORD"); err == nil || !strings.Contains(err.Error(), "password authentication failed") {
		t.Errorf("the superuser over the network: %v, want its password refused", err)
	}
}

// lost: without a volume what was stored goes with the pod, and the next
// upgrade makes the platform whole, empty; it can give the stores volumes.
func (d *trial) lost(t *testing.T) {
	d.replace(t)
	if wrong := d.found(t); wrong == "" {
		t.Error("search finds a lost memory")
	}
	for i := range 2 {
		d.volume(t, i)
	}
	// The operator looks once a minute whether the stores have its Tenants: too long to wait for here.
	d.helm(t, "upgrade", "mnemo", "charts/mnemo", "--reset-then-reuse-values", "--set", "demoStorage=1Gi,operator.resync=5s", "--wait", "--timeout", "3m")
	eventually(t, 3*time.Minute, func() string {
		d.signIn(t)
		query := "anything"
		answer, err := d.user.ListMemories(t.Context(), &client.ListMemoriesParams{Query: &query})
		if err != nil {
			return err.Error()
		}
		if n := len(answer.Body.Memories); n != 0 {
			return fmt.Sprintf("%d memories in an empty database", n)
		}
		return ""
	})
	d.remember(t)
}

// kept: a volume outlives the pod, and an upgrade changes neither passwords nor
// data.
func (d *trial) kept(t *testing.T) {
	d.replace(t)
	eventually(t, 3*time.Minute, func() string { return d.found(t) })
	d.helm(t, "upgrade", "mnemo", "charts/mnemo", "--reset-then-reuse-values", "--set", "api.replicas=1", "--wait", "--timeout", "3m")
	if got := d.secrets(t); got != d.passwords {
		t.Error("the passwords are others than those of the install")
	}
	eventually(t, 3*time.Minute, func() string { return d.found(t) })
}

// replace deletes PostgreSQL's pod and waits for the next one.
func (d *trial) replace(t *testing.T) {
	t.Helper()
	kubectl(t, "", "delete", "pod", "--namespace", trialHome, "--selector", "app.kubernetes.io/component=demo-postgres")
	kubectl(t, "", "rollout", "status", "--namespace", trialHome, "deployment/mnemo-demo-postgres", "--timeout=3m")
}

// secrets are the passwords the chart generated.
func (d *trial) secrets(t *testing.T) string {
	t.Helper()
	return kubectl(t, "", "get", "secrets", "--namespace", trialHome, "--selector", "app.kubernetes.io/component=demo",
		"--output", `jsonpath={range .items[*]}{.metadata.name}={.data.password} {end}`)
}

// volume makes one, as the provisioner of another cluster would.
func (d *trial) volume(t *testing.T, i int) {
	t.Helper()
	dir := filepath.Join(cluster.dir, "volumes", fmt.Sprint(i))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	here := map[string]any{"key": "kubernetes.io/hostname", "operator": "In", "values": []string{"mnemo"}}
	volume, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "PersistentVolume", "metadata": map[string]any{"name": fmt.Sprint("trial-", i)},
		"spec": map[string]any{
			"capacity": map[string]string{"storage": "1Gi"}, "accessModes": []string{"ReadWriteOnce"}, "persistentVolumeReclaimPolicy": "Retain",
			"local": map[string]string{"path": dir},
			"nodeAffinity": map[string]any{"required": map[string]any{
				"nodeSelectorTerms": []any{map[string]any{"matchExpressions": []any{here}}},
			}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	kubectl(t, string(volume), "create", "--filename", "-")
}

// uninstalled: Tenants and their Secrets stay where they were let go, and
// nothing else of the release.
func (d *trial) uninstalled(t *testing.T) {
	kubectl(t, "", "annotate", "deployment", "mnemo-operator", "--namespace", trialHome, controllers.ReleaseAnnotation+"=true")
	d.helm(t, "uninstall", "mnemo", "--wait", "--timeout", "3m")
	left := kubectl(t, "", "get", "--namespace", trialHome, "--output", "name", "--selector", "app.kubernetes.io/managed-by=Helm",
		"deployments,jobs,services,serviceaccounts,configmaps,secrets,persistentvolumeclaims,networkpolicies,roles,rolebindings,clusterroles,clusterrolebindings")
	if left != "" {
		t.Errorf("left after the uninstall: %s", left)
	}
	if got := kubectl(t, "", "get", "tenants,secrets", "--namespace", trialHome, "--output", "name"); got != "tenant.mnemo.dev/acme\nsecret/acme-alice-access" {
		t.Errorf("left of the customer: %q, want the Tenant and its user's Secret", got)
	}
	kubectl(t, "", "delete", "tenants", "--all", "--namespace", trialHome, "--timeout=60s")
	kubectl(t, "", "delete", "persistentvolumes", "--all", "--timeout=60s")
}
