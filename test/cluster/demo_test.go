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

// demoNamespace is the namespace of the demo in docs/install.md.
const demoNamespace = "mnemo"

// demo is an installation of the chart with `demo=true`.
type demo struct {
	namespace string
	images    string // chart values of the locally built images, for --set
	passwords string
	user      *client.Client
}

func (d *demo) helm(t *testing.T, args ...string) {
	t.Helper()
	if _, err := try(t.Context(), "", "hack/tool.sh", append([]string{"helm", "--namespace", demoNamespace}, args...)...); err != nil {
		t.Fatal(err)
	}
}

// uninstallRelease uninstalls the release of the cluster, which exists if a test runs alone: its operator manages the
// Tenants of all namespaces.
func uninstallRelease(t *testing.T) {
	t.Helper()
	if kubectl(t, "", "get", "deployments", "--namespace", namespace, "--output", "name") != "" {
		kubectl(t, "", "annotate", "deployment", "mnemo-operator", "--namespace", namespace, controllers.ReleaseAnnotation+"=true")
		helm(t, "uninstall", "mnemo", "--wait", "--timeout", "3m")
	}
}

// prepare creates a namespace that enforces the restricted Pod Security Standard, and
// loads the images.
func (d *demo) prepare(t *testing.T) {
	uninstallRelease(t)
	kubectl(t, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+demoNamespace+`","labels":{
		"pod-security.kubernetes.io/enforce":"restricted"}}}`, "create", "--filename", "-")
	images, err := try(t.Context(), "", cluster.program, "demo", "-dir", cluster.dir)
	if err != nil {
		t.Fatal(err)
	}
	d.images = strings.TrimSpace(images)
}

// createTenant creates a Tenant as the chart's notes say and connects as its user.
func (d *demo) createTenant(t *testing.T) {
	t.Helper()
	kubectl(t, `{"apiVersion":"mnemo.dev/v1alpha1","kind":"Tenant","metadata":{"name":"acme","namespace":"`+d.namespace+`"},
		"spec":{"displayName":"Acme","users":[{"name":"alice","email":"alice@acme.test"}]}}`, "apply", "--filename", "-")
	kubectl(t, "", "wait", "--namespace", d.namespace, "--for=condition=Ready", "tenant/acme", "--timeout=3m")
	d.connect(t)
}

// connect creates a client with the current token of the user's Secret.
func (d *demo) connect(t *testing.T) {
	t.Helper()
	token := kubectl(t, "", "get", "secret", "acme-alice-access", "--namespace", d.namespace, "--output", "go-template={{.data.token | base64decode}}")
	address := kubectl(t, "", "get", "service", "mnemo", "--namespace", d.namespace, "--output", "jsonpath={.spec.clusterIP}")
	var err error
	if d.user, err = client.New("http://"+address, token); err != nil {
		t.Fatal(err)
	}
}

// storeAndSearch stores a memory and waits until a paraphrase finds it.
func (d *demo) storeAndSearch(t *testing.T) {
	t.Helper()
	const text = "2026-11-20 My sister Ana moved to Lisbon."
	if _, err := d.user.CreateMemory(t.Context(), nil, client.CreateMemoryRequest{Text: text}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 3*time.Minute, func() string { return d.search(t) })
}

// search returns a problem unless the memory is found without degradation.
func (d *demo) search(t *testing.T) string {
	t.Helper()
	query := "which city does my sibling live in?"
	answer, err := d.user.ListMemories(t.Context(), &client.ListMemoriesParams{Query: &query})
	if err != nil {
		return err.Error()
	}
	if n := len(answer.Body.Memories); n != 1 || answer.Degraded() {
		return fmt.Sprintf("found %d memories, degraded: %t; want 1, not degraded", n, answer.Degraded())
	}
	return ""
}

// superuserRejected checks that the superuser, whose password the PostgreSQL image requires,
// cannot connect over the network.
func (d *demo) superuserRejected(t *testing.T) {
	psql := func(role, password string) error {
		_, err := try(t.Context(), "", cluster.env["KUBECTL"], "exec", "--namespace", demoNamespace, "deployment/mnemo-demo-postgres", "--",
			"bash", "-c", `PGPASSWORD="$`+password+`" psql --host mnemo-demo-postgres --username `+role+` --dbname mnemo --command "select 1"`)
		return err
	}
	if err := psql("mnemo_app", "APP_PASSWORD"); err != nil {
		t.Errorf("application role: %v", err)
	}
	if err := psql("postgres", "POSTGRES_PASSWORD"); err == nil || !strings.Contains(err.Error(), "password authentication failed") {
		t.Errorf("superuser over the network: %v, want an authentication failure", err)
	}
}

// replaceWithoutVolume checks that a replaced PostgreSQL pod loses the data, and that an
// upgrade, which also adds volumes, creates an empty database.
func (d *demo) replaceWithoutVolume(t *testing.T) {
	d.replacePod(t)
	if problem := d.search(t); problem == "" {
		t.Error("search finds a memory of the lost database")
	}
	for i := range 2 {
		createVolume(t, fmt.Sprint("demo-", i))
	}
	// A shorter resync interval recreates the Tenants sooner than the default of a minute.
	d.helm(t, "upgrade", "mnemo", "charts/mnemo", "--reset-then-reuse-values", "--set", "demoStorage=1Gi,operator.resync=5s", "--wait", "--timeout", "3m")
	eventually(t, 3*time.Minute, func() string {
		d.connect(t)
		query := "anything"
		answer, err := d.user.ListMemories(t.Context(), &client.ListMemoriesParams{Query: &query})
		if err != nil {
			return err.Error()
		}
		if n := len(answer.Body.Memories); n != 0 {
			return fmt.Sprintf("%d memories, want none", n)
		}
		return ""
	})
	d.storeAndSearch(t)
}

// replaceWithVolume checks that a replaced PostgreSQL pod keeps the data, and that an
// upgrade changes neither the passwords nor the data.
func (d *demo) replaceWithVolume(t *testing.T) {
	d.replacePod(t)
	eventually(t, 3*time.Minute, func() string { return d.search(t) })
	d.helm(t, "upgrade", "mnemo", "charts/mnemo", "--reset-then-reuse-values", "--set", "api.replicas=1", "--wait", "--timeout", "3m")
	if got := d.generatedPasswords(t); got != d.passwords {
		t.Error("the upgrade changed the generated passwords")
	}
	eventually(t, 3*time.Minute, func() string { return d.search(t) })
}

// replacePod deletes the PostgreSQL pod and waits for its replacement.
func (d *demo) replacePod(t *testing.T) {
	t.Helper()
	kubectl(t, "", "delete", "pod", "--namespace", demoNamespace, "--selector", "app.kubernetes.io/component=demo-postgres")
	kubectl(t, "", "rollout", "status", "--namespace", demoNamespace, "deployment/mnemo-demo-postgres", "--timeout=3m")
}

// generatedPasswords returns the passwords that the chart generated.
func (d *demo) generatedPasswords(t *testing.T) string {
	t.Helper()
	return kubectl(t, "", "get", "secrets", "--namespace", demoNamespace, "--selector", "app.kubernetes.io/component=demo",
		"--output", `jsonpath={range .items[*]}{.metadata.name}={.data.password} {end}`)
}

// createVolume creates a persistent volume, as a provisioner would.
func createVolume(t *testing.T, name string) {
	t.Helper()
	dir := filepath.Join(cluster.dir, "volumes", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	onNode := map[string]any{"key": "kubernetes.io/hostname", "operator": "In", "values": []string{"mnemo"}}
	volume, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "PersistentVolume", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"capacity": map[string]string{"storage": "1Gi"}, "accessModes": []string{"ReadWriteOnce"}, "persistentVolumeReclaimPolicy": "Retain",
			"local": map[string]string{"path": dir},
			"nodeAffinity": map[string]any{"required": map[string]any{
				"nodeSelectorTerms": []any{map[string]any{"matchExpressions": []any{onNode}}},
			}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	kubectl(t, string(volume), "create", "--filename", "-")
}

// uninstall checks that only the Tenants and the Secrets of their users remain after
// `helm uninstall`.
func (d *demo) uninstall(t *testing.T) {
	kubectl(t, "", "annotate", "deployment", "mnemo-operator", "--namespace", demoNamespace, controllers.ReleaseAnnotation+"=true")
	d.helm(t, "uninstall", "mnemo", "--wait", "--timeout", "3m")
	left := kubectl(t, "", "get", "--namespace", demoNamespace, "--output", "name", "--selector", "app.kubernetes.io/managed-by=Helm",
		"deployments,jobs,services,serviceaccounts,configmaps,secrets,persistentvolumeclaims,networkpolicies,roles,rolebindings,clusterroles,clusterrolebindings")
	if left != "" {
		t.Errorf("resources after the uninstall: %s", left)
	}
	if got := kubectl(t, "", "get", "tenants,secrets", "--namespace", demoNamespace, "--output", "name"); got != "tenant.mnemo.dev/acme\nsecret/acme-alice-access" {
		t.Errorf("Tenants and Secrets after the uninstall: %q, want the Tenant and the Secret of its user", got)
	}
	kubectl(t, "", "delete", "tenants", "--all", "--namespace", demoNamespace, "--timeout=60s")
	kubectl(t, "", "delete", "persistentvolumes", "--all", "--timeout=60s")
}
