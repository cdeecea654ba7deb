package cluster_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// changeTenant makes the operator reconcile a Tenant.
func changeTenant(t *testing.T) {
	t.Helper()
	kubectl(t, "", "patch", "tenant/load", "--type=merge", "--patch", fmt.Sprintf(`{"spec":{"displayName":"%d"}}`, time.Now().UnixNano()))
}

// makeReconciliationFail changes a Tenant while the application role has no privilege to
// write its quota.
func makeReconciliationFail(t *testing.T, m *monitor, db *pgx.Conn) {
	t.Helper()
	execute(t, db, "revoke insert, update on quotas from mnemo_app")
	changeTenant(t)
	m.wantAlert(t, "a Tenant changes while the application role has no privilege to write quotas", "MnemoReconcileFailing")
	execute(t, db, "grant insert, update on quotas to mnemo_app")
}

// disturbOperator triggers the alerts of the operator: its writes wait for a lock, another
// holder has its lease, and it is scaled to 0 replicas.
func disturbOperator(t *testing.T, m *monitor) {
	t.Helper()
	locked := database(t)
	execute(t, locked, "begin")
	execute(t, locked, "lock table quotas in share mode")
	changeTenant(t)
	m.wantAlert(t, "a transaction locks the table quotas, so that a reconciliation waits; for 3 s instead of 300", "MnemoReconcileQueueOld", "> 300", "> 3")
	execute(t, locked, "commit")

	now := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
	kubectl(t, "", "patch", "lease/mnemo-operator", "--namespace", namespace, "--type=merge", "--patch",
		`{"spec":{"holderIdentity":"nobody","leaseDurationSeconds":3600,"renewTime":"`+now+`"}}`)
	m.wantAlert(t, "the lease is held by an operator that does not exist", "MnemoNoLeader")
	kubectl(t, "", "delete", "lease/mnemo-operator", "--namespace", namespace)
	m.wantResolved(t, "MnemoNoLeader")

	kubectl(t, "", "scale", "deployment/mnemo-operator", "--namespace", namespace, "--replicas=0")
	m.wantAlert(t, "the operator is scaled to 0 replicas; its series end", "MnemoOperatorDown")
	kubectl(t, "", "scale", "deployment/mnemo-operator", "--namespace", namespace, "--replicas=1")
	m.wantResolved(t, "MnemoOperatorDown")
	m.wantTargets(t, 2)
}

// isolateReplica drops the packets of one of two API servers to PostgreSQL.
func isolateReplica(t *testing.T, m *monitor) {
	t.Helper()
	pid := processOf(t, ready(t, "api")[0])
	rule := func(action string) {
		out, err := exec.CommandContext(t.Context(), "nsenter", "--target", pid, "--net", "--",
			"ip", "rule", action, "priority", "1", "ipproto", "tcp", "dport", "5432", "blackhole").CombinedOutput()
		if err != nil {
			t.Fatalf("ip rule %s: %v\n%s", action, err, out)
		}
	}
	rule("add")
	m.wantAlert(t, "the packets of one of two API servers to PostgreSQL are dropped", "MnemoDependencyDegraded")
	rule("del")
	m.wantResolved(t, "MnemoDependencyDegraded")
}

// processOf returns the id of a process in the pod.
func processOf(t *testing.T, pod string) string {
	t.Helper()
	uid := kubectl(t, "", "get", "pod", pod, "--namespace", namespace, "--output", "jsonpath={.metadata.uid}")
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range groups {
		content, err := os.ReadFile(file)
		if err == nil && (strings.Contains(string(content), uid) || strings.Contains(string(content), strings.ReplaceAll(uid, "-", "_"))) {
			return filepath.Base(filepath.Dir(file))
		}
	}
	t.Fatalf("no process of pod %s", pod)
	return ""
}

// wantUnavailable checks that the Service forwards Mnemo's own 503.
func wantUnavailable(t *testing.T, token string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, cluster.env["MNEMO_URL"]+"/api/buckets", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := (&http.Client{Timeout: time.Minute}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Errorf("without PostgreSQL: %s, Retry-After %q; want 503 with Retry-After", res.Status, res.Header.Get("Retry-After"))
	}
}
