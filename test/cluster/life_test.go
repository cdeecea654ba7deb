package cluster_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/api/client"
	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/postgres"
)

// TestLife runs through the life of an installation: each step continues with the state
// that the previous steps left.
func TestLife(t *testing.T) {
	var token string // of a Tenant that may ask much
	var stored int64 // memories it has
	var w *watch
	keep := t.Cleanup
	steps := []struct {
		name string
		run  func(t *testing.T)
	}{
		{"a memory is stored and found through the Service", remembered},
		{"helm test", func(t *testing.T) { helm(t, "test", "mnemo") }},
		{"a Tenant for the load", func(t *testing.T) { token = applyTenant(t, "load", much) }},
		{"scaled to two, with an identity provider, and watched by Prometheus", func(t *testing.T) {
			defineMonitoring(t)
			upgrade(t, append(providerValues(t), "api.replicas=2", "metrics.serviceMonitor.enabled=true", "metrics.serviceMonitor.interval=5s",
				"metrics.rules.enabled=true", "metrics.dashboards.enabled=true")...)
			providerOffered(t)
			if got := ready(t, "api"); len(got) != 2 {
				t.Errorf("ready API servers: %q, want two", got)
			}
			w = startWatch(t, keep)
			w.wantTargets(t, 2)
			w.wantSilence(t)
		}},
		{"the stores are asked over TLS", storesOverTLS},
		{"upgraded under load", func(t *testing.T) {
			buildNext(t)
			l := startLoad(t, token)
			upgrade(t, "image.tag=next")
			wantVersion(t, "next")
			l.stop(t, "upgrade")
			stored += l.stored.Load()
			w.wantTargets(t, 2)
		}},
		{"the operator is killed", func(t *testing.T) {
			operatorKilled(t)
			w.wantTargets(t, 2)
		}},
		{"the node is drained and back, under load", func(t *testing.T) {
			l := startLoad(t, token)
			drained(t)
			l.stop(t, "drain")
			stored += l.stored.Load()
			w.wantTargets(t, 2)
		}},
		{"rolled back under load, on the newer schema", func(t *testing.T) {
			l := startLoad(t, token)
			helm(t, "rollback", "mnemo", "2", "--wait", "--timeout", "5m")
			wantVersion(t, "local")
			l.stop(t, "rollback")
			stored += l.stored.Load()
			w.wantTargets(t, 2)
		}},
		{"nothing was lost and nothing stored twice", func(t *testing.T) {
			if got := memories(t, token); got != stored {
				t.Errorf("%d memories, want the %d that were taken", got, stored)
			}
		}},
		{"no alert has fired, and no panel is empty", func(t *testing.T) {
			w.wantQuietLife(t)
			panelsFilled(t, w, token)
		}},
		{"what each alert is for makes it fire", func(t *testing.T) { alertsFire(t, w, token) }},
		{"uninstalled", func(t *testing.T) {
			uninstalled(t)
			w.wantAlert(t, "the release is uninstalled", "MnemoDown")
			w.report(t)
		}},
	}
	for _, step := range steps {
		if !t.Run(step.name, step.run) {
			return // what follows would only fail too
		}
		if w != nil {
			w.look(t)
		}
	}
}

// remembered checks that each user of the sample Tenant finds only their own memory.
func remembered(t *testing.T) {
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
			t.Errorf("%s finds %d memories, degraded: %t; want %d by the vector store", name, got, found.Degraded(), want)
		}
	}
	if got := metrics(t); !strings.Contains(got, "mnemo_http_requests_total") {
		t.Errorf("no requests in the metrics:\n%.500s", got)
	}
}

// ahead is how many migrations the next version has that ours does not know.
const ahead = 2

// buildNext gives the cluster the image of a next version, whose schema is
// further than ours.
func buildNext(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	overlay, replace := filepath.Join(dir, "overlay.json"), map[string]string{}
	for n := range ahead {
		migration := filepath.Join(dir, fmt.Sprint(n))
		sql := fmt.Sprintf("-- +goose Up\ncreate table of_the_next_version_%d (id bigint primary key);\n", n)
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

// wantVersion waits until only API servers of a version are there, and checks
// that they run on the newer schema.
func wantVersion(t *testing.T, version string) {
	t.Helper()
	eventually(t, time.Minute, func() string {
		images := kubectl(t, "", "get", "pods", "--namespace", namespace, "--selector", "app.kubernetes.io/component in (api,operator)",
			"--output", `jsonpath={range .items[*]}{.spec.containers[0].image}{"\n"}{end}`)
		for image := range strings.Lines(images) {
			if !strings.HasSuffix(strings.TrimSpace(image), ":"+version) {
				return "pods of these images: " + images
			}
		}
		return ""
	})
	if got := metrics(t); !strings.Contains(got, fmt.Sprintf("version=%q", version)) {
		t.Errorf("the API server does not say it is of version %s", version)
	}
	want := fmt.Sprint(postgres.SchemaVersion() + ahead)
	logs := kubectl(t, "", "logs", "--namespace", namespace, "--selector", "app.kubernetes.io/component=migrate", "--tail=-1")
	if !strings.Contains(logs, `"version":`+want) {
		t.Errorf("the migration did not end at schema %s:\n%s", want, logs)
	}
}

// panelsFilled does what the panels that are still empty ask for.
func panelsFilled(t *testing.T, w *watch, token string) {
	l := startLoad(t, token)
	eventually(t, time.Minute, func() string {
		kubectl(t, "", "patch", "tenant/load", "--type=merge", "--patch", fmt.Sprintf(`{"spec":{"displayName":"%d"}}`, time.Now().UnixNano()))
		return w.seen.Look(t, w.Server, w.panels)
	})
	l.cancel()
	l.clients.Wait()
}

// operatorKilled kills the operator and checks that its replacement takes over.
func operatorKilled(t *testing.T) {
	old := ready(t, "operator")
	kubectl(t, "", append([]string{"delete", "pod", "--namespace", namespace, "--grace-period=0", "--force"}, old...)...)
	remembered := applyTenant(t, "after-the-kill", much)
	if got := memories(t, remembered); got != 0 {
		t.Errorf("a new user has %d memories", got)
	}
	eventually(t, time.Minute, func() string {
		if got := ready(t, "operator"); len(got) != 1 || got[0] == old[0] {
			return fmt.Sprintf("operators %q after %q was killed", got, old)
		}
		return ""
	})
}

// drained checks that a drain evicts one API server at a time: on the only node, the last
// one stays and keeps serving. All replicas return after the node is uncordoned.
func drained(t *testing.T) {
	_, err := try(t.Context(), "", cluster.env["KUBECTL"], "drain", "mnemo", "--delete-emptydir-data", "--ignore-daemonsets", "--timeout=40s",
		"--pod-selector=app.kubernetes.io/name=mnemo")
	if err == nil || !strings.Contains(err.Error(), "disruption budget") {
		t.Errorf("drain: %v, want it held up by the disruption budget", err)
	}
	if got := ready(t, "api"); len(got) != 1 {
		t.Errorf("API servers on a drained node: %q, want the one the budget keeps", got)
	}
	if got := ready(t, "operator"); len(got) != 0 {
		t.Errorf("operators on a drained node: %q, want none", got)
	}
	kubectl(t, "", "uncordon", "mnemo")
	eventually(t, 2*time.Minute, func() string {
		if api, operator := ready(t, "api"), ready(t, "operator"); len(api) != 2 || len(operator) != 1 {
			return fmt.Sprintf("API servers %q, operators %q", api, operator)
		}
		return ""
	})
}

// uninstalled checks that uninstalling fails while there are Tenants, with an error
// that says how to proceed, and that Tenants have no finalizers afterwards.
func uninstalled(t *testing.T) {
	err := tryHelm(t.Context(), "uninstall", "mnemo", "--timeout", "90s")
	if err == nil {
		t.Fatal("helm uninstall succeeded although there are Tenants with finalizers")
	}
	if want := "annotate deployment mnemo-operator " + controllers.ReleaseAnnotation + "=true"; !strings.Contains(err.Error(), want) {
		t.Errorf("the refusal does not say what to do, %q: %v", want, err)
	}
	if got := ready(t, "operator"); len(got) != 1 {
		t.Errorf("operators after an uninstall that was refused: %q", got)
	}
	kubectl(t, "", "annotate", "deployment", "mnemo-operator", "--namespace", namespace, controllers.ReleaseAnnotation+"=true")
	helm(t, "uninstall", "mnemo", "--wait", "--timeout", "3m")
	left := kubectl(t, "", "get", "deployments,jobs,services,serviceaccounts,roles,clusterroles", "--namespace", namespace,
		"--selector", "app.kubernetes.io/managed-by=Helm", "--output", "name")
	if left != "" {
		t.Errorf("left after the uninstall: %s", left)
	}
	if got := strings.Fields(kubectl(t, "", "get", "tenants", "--output", "name")); len(got) != 3 {
		t.Errorf("Tenants after the uninstall: %q, want the three that were there", got)
	}
	kubectl(t, "", "delete", "tenants", "--all", "--timeout=30s")
}

// metrics are those of one of the API servers.
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

// memories counts those of a user.
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
