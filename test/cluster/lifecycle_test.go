package cluster_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/api/client"
	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/postgres"
)

// TestLifecycle runs through the lifecycle of an installation: each step continues with
// the state that the previous steps left.
func TestLifecycle(t *testing.T) {
	var token string // of a Tenant with a high quota
	var stored int64 // memories of that Tenant
	var m *monitor
	cleanup := t.Cleanup
	steps := []struct {
		name string
		run  func(t *testing.T)
	}{
		{"store and search a memory through the Service", storeAndSearch},
		{"helm test", func(t *testing.T) { helm(t, "test", "mnemo") }},
		{"create a Tenant for the load", func(t *testing.T) {
			token = applyTenant(t, "load", highQuota)
			outgrow(t, "load")
		}},
		{"enable two replicas, an identity provider and monitoring", func(t *testing.T) {
			defineMonitoring(t)
			upgrade(t, append(providerValues(t), "api.replicas=2", "metrics.serviceMonitor.enabled=true", "metrics.serviceMonitor.interval=5s",
				"metrics.rules.enabled=true", "metrics.dashboards.enabled=true", "metrics.tenantNames=true")...)
			signInOffersProvider(t)
			if got := ready(t, "api"); len(got) != 2 {
				t.Errorf("ready API servers: %q, want 2", got)
			}
			m = startMonitor(t, cleanup)
			m.wantTargets(t, 2)
			m.wantNoActiveAlerts(t)
		}},
		{"connect to the stores over TLS", storesOverTLS},
		{"upgrade under load", func(t *testing.T) {
			buildNext(t)
			l := startLoad(t, token)
			upgrade(t, "image.tag=next")
			wantVersion(t, "next")
			l.stop(t, "upgrade")
			stored += l.stored.Load()
			m.wantTargets(t, 2)
		}},
		{"kill the operator", func(t *testing.T) {
			killOperator(t)
			m.wantTargets(t, 2)
		}},
		{"drain the node under load", func(t *testing.T) {
			l := startLoad(t, token)
			drainNode(t)
			l.stop(t, "drain")
			stored += l.stored.Load()
			m.wantTargets(t, 2)
		}},
		{"roll back under load, on the newer schema", func(t *testing.T) {
			l := startLoad(t, token)
			helm(t, "rollback", "mnemo", "2", "--wait", "--timeout", "5m")
			wantVersion(t, "local")
			l.stop(t, "rollback")
			stored += l.stored.Load()
			m.wantTargets(t, 2)
		}},
		{"no memory is lost or duplicated", func(t *testing.T) {
			if got := memories(t, token); got != stored {
				t.Errorf("memories = %d, want %d", got, stored)
			}
		}},
		{"no alert fired and every panel has data", func(t *testing.T) {
			m.wantNoAlertFired(t)
			wantPanelData(t, m, token)
		}},
		{"run the commands of the runbooks", func(t *testing.T) { runbooksWork(t, m) }},
		{"limit the memory of the Go runtime", func(t *testing.T) { wantMemoryLimits(t, m) }},
		{"trigger each alert", func(t *testing.T) { triggerAlerts(t, m, token) }},
		{"back up and restore", backUpAndRestore},
		{"uninstall", func(t *testing.T) {
			uninstall(t)
			m.wantAlert(t, "the release is uninstalled", "MnemoDown")
			m.writeReport(t)
		}},
	}
	for _, step := range steps {
		if !t.Run(step.name, step.run) {
			return // later steps depend on this one
		}
		if m != nil {
			m.recordPanels(t)
		}
	}
}

// TestDemo follows "Deploy" in README.md, which installs the chart with bundled
// stores. It is in this file because Go runs tests in the order of their files: it
// must run after TestLifecycle, whose cluster it uses and whose release it replaces.
func TestDemo(t *testing.T) {
	d := &demo{namespace: demoNamespace}
	steps := []struct {
		name string
		run  func(t *testing.T)
	}{
		{"prepare a namespace and images", d.prepare},
		{"install as in README.md, and store and search a memory", d.readme},
		{"the superuser cannot connect over the network", d.superuserRejected},
		{"without a volume, a replaced pod loses the data", d.replaceWithoutVolume},
		{"with a volume, a replaced pod keeps the data", d.replaceWithVolume},
		{"uninstall", d.uninstall},
	}
	for _, step := range steps {
		if !t.Run(step.name, step.run) {
			return // later steps depend on this one
		}
	}
}

// TestBundle installs the OLM bundle as OLM would do it: with its Deployments and permissions, and the Secrets of docs/install.md.
func TestBundle(t *testing.T) {
	b := &bundle{}
	steps := []struct {
		name string
		run  func(t *testing.T)
	}{
		{"build the bundle and its image", b.build},
		{"create a database and the Secrets", b.createSecrets},
		{"install", b.apply},
		{"store and search a memory", b.use},
		{"uninstall", b.remove},
	}
	for _, step := range steps {
		if !t.Run(step.name, step.run) {
			return // later steps depend on this one
		}
	}
}

// storeAndSearch checks that each user of the sample Tenant finds only their own memories.
func storeAndSearch(t *testing.T) {
	users := map[string]*client.Client{}
	for _, name := range []string{"MNEMO_TOKEN", "MNEMO_TOKEN_2"} {
		users[name] = connect(t, cluster.env[name])
	}
	const text = "2026-11-20 My sister Ana moved to Lisbon."
	if _, err := users["MNEMO_TOKEN"].CreateMemory(t.Context(), nil, client.CreateMemoryRequest{Text: text}); err != nil {
		t.Fatal(err)
	}
	query := "which city does my sibling live in?"
	for name, want := range map[string]int{"MNEMO_TOKEN": 1, "MNEMO_TOKEN_2": 0} {
		found, err := users[name].ListMemories(t.Context(), &client.ListMemoriesParams{Query: &query})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(found.Body.Memories); got != want || found.Degraded() {
			t.Errorf("%s finds %d memories, degraded: %t; want %d, not degraded", name, got, found.Degraded(), want)
		}
	}
	if got := metrics(t); !strings.Contains(got, "mnemo_http_requests_total") {
		t.Errorf("metrics without mnemo_http_requests_total:\n%.500s", got)
	}
}

// newMigrations is the number of migrations that the next version adds.
const newMigrations = 2

// buildNext loads the image of the next version, which has a newer schema, into the
// cluster.
func buildNext(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	overlay, replace := filepath.Join(dir, "overlay.json"), map[string]string{}
	for n := range newMigrations {
		migration := filepath.Join(dir, fmt.Sprint(n))
		sql := fmt.Sprintf("-- +goose Up\ncreate table next_version_%d (id bigint primary key);\n", n)
		if err := os.WriteFile(migration, []byte(sql), 0o600); err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("internal/postgres/migrations/%05d_next.sql", postgres.SchemaVersion()+1+int64(n))
		replace[filepath.Join(cluster.root, name)] = migration
	}
	content, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := try(t.Context(), "", cluster.program, "load", "-dir", cluster.dir, "-tag", "next", "-overlay", overlay); err != nil {
		t.Fatal(err)
	}
}

// wantVersion waits until all pods have the given version and checks that they run on the
// newer schema.
func wantVersion(t *testing.T, version string) {
	t.Helper()
	eventually(t, time.Minute, func() string {
		images := kubectl(t, "", "get", "pods", "--namespace", namespace, "--selector", "app.kubernetes.io/component in (api,operator)",
			"--output", `jsonpath={range .items[*]}{.spec.containers[0].image}{"\n"}{end}`)
		for image := range strings.Lines(images) {
			if !strings.HasSuffix(strings.TrimSpace(image), ":"+version) {
				return "pods with images " + images
			}
		}
		return ""
	})
	if got := metrics(t); !strings.Contains(got, fmt.Sprintf("version=%q", version)) {
		t.Errorf("metrics of the API server do not contain version %s", version)
	}
	want := fmt.Sprint(postgres.SchemaVersion() + newMigrations)
	logs := kubectl(t, "", "logs", "--namespace", namespace, "--selector", "app.kubernetes.io/component=migrate", "--tail=-1")
	if !strings.Contains(logs, `"version":`+want) {
		t.Errorf("log of the migration does not contain version %s:\n%s", want, logs)
	}
}

// wantPanelData generates load and changes until every panel has had data.
func wantPanelData(t *testing.T, m *monitor, token string) {
	l := startLoad(t, token)
	eventually(t, time.Minute, func() string {
		kubectl(t, "", "patch", "tenant/load", "--type=merge", "--patch", fmt.Sprintf(`{"spec":{"displayName":"%d"}}`, time.Now().UnixNano()))
		return m.seen.Record(t, m.Server, m.panels)
	})
	l.cancel()
	l.clients.Wait()
}

// killOperator kills the operator and checks that its replacement takes over.
func killOperator(t *testing.T) {
	old := ready(t, "operator")
	kubectl(t, "", append([]string{"delete", "pod", "--namespace", namespace, "--grace-period=0", "--force"}, old...)...)
	token := applyTenant(t, "after-the-kill", highQuota)
	if got := memories(t, token); got != 0 {
		t.Errorf("memories of a new user = %d, want 0", got)
	}
	eventually(t, time.Minute, func() string {
		if got := ready(t, "operator"); len(got) != 1 || got[0] == old[0] {
			return fmt.Sprintf("ready operators: %q, want one that replaces %q", got, old)
		}
		return ""
	})
}

// drainNode checks that a drain evicts one API server at a time: on the only node, the last
// one stays and keeps serving. All replicas return after the node is uncordoned.
func drainNode(t *testing.T) {
	_, err := try(t.Context(), "", cluster.env["KUBECTL"], "drain", "mnemo", "--delete-emptydir-data", "--ignore-daemonsets", "--timeout=40s",
		"--pod-selector=app.kubernetes.io/name=mnemo")
	if err == nil || !strings.Contains(err.Error(), "disruption budget") {
		t.Errorf("drain: %v, want an error about the disruption budget", err)
	}
	if got := ready(t, "api"); len(got) != 1 {
		t.Errorf("API servers on the drained node: %q, want 1", got)
	}
	if got := ready(t, "operator"); len(got) != 0 {
		t.Errorf("operators on the drained node: %q, want none", got)
	}
	kubectl(t, "", "uncordon", "mnemo")
	eventually(t, 2*time.Minute, func() string {
		if api, operator := ready(t, "api"), ready(t, "operator"); len(api) != 2 || len(operator) != 1 {
			return fmt.Sprintf("ready API servers: %q, want 2; ready operators: %q, want 1", api, operator)
		}
		return ""
	})
}

// uninstall checks that `helm uninstall` fails while there are Tenants, with an error
// that says how to proceed, and that Tenants have no finalizers afterwards.
func uninstall(t *testing.T) {
	tenants := strings.Fields(kubectl(t, "", "get", "tenants", "--output", "name"))
	err := tryHelm(t.Context(), "uninstall", "mnemo", "--timeout", "90s")
	if err == nil {
		t.Fatal("helm uninstall succeeded while there are Tenants with finalizers")
	}
	if want := "annotate deployment mnemo-operator " + controllers.ReleaseAnnotation + "=true"; !strings.Contains(err.Error(), want) {
		t.Errorf("error does not contain %q: %v", want, err)
	}
	if got := ready(t, "operator"); len(got) != 1 {
		t.Errorf("ready operators after the failed uninstall: %q, want 1", got)
	}
	kubectl(t, "", "annotate", "deployment", "mnemo-operator", "--namespace", namespace, controllers.ReleaseAnnotation+"=true")
	helm(t, "uninstall", "mnemo", "--wait", "--timeout", "3m")
	left := kubectl(t, "", "get", "deployments,jobs,services,serviceaccounts,roles,clusterroles", "--namespace", namespace,
		"--selector", "app.kubernetes.io/managed-by=Helm", "--output", "name")
	if left != "" {
		t.Errorf("resources after the uninstall: %s", left)
	}
	if got := strings.Fields(kubectl(t, "", "get", "tenants", "--output", "name")); len(got) == 0 || !slices.Equal(got, tenants) {
		t.Errorf("Tenants after the uninstall: %q, want %q", got, tenants)
	}
	kubectl(t, "", "delete", "tenants", "--all", "--timeout=30s")
}

// metrics returns the metrics of one of the API servers.
func metrics(t *testing.T) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, cluster.env["MNEMO_METRICS_URL"], nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// memories returns the number of a user's memories.
func memories(t *testing.T, token string) int64 {
	t.Helper()
	buckets, err := connect(t, token).ListBuckets(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var n int64
	for _, b := range buckets.Body {
		n += b.MemoryCount
	}
	return n
}
