package charts_test

import (
	"strings"
	"testing"
)

// The chart reserves the connections that its pods can open.
func TestMaxConnectionsFollowReplicas(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, set, want string
	}{
		"Default":    {"2 and 1 replicas, one more of each during an upgrade: 5 × (20 + 2) + 30", "api.replicas=2", "140"},
		"Replicas":   {"10 and 2 replicas: 14 × 22 + 30", "api.replicas=10,operator.replicas=2", "338"},
		"Autoscaler": {"up to 20 replicas: 23 × 22 + 30", "api.autoscaling.enabled=true,api.autoscaling.maxReplicas=20", "536"},
		"Pool":       {"smaller pools: 5 × (5 + 2) + 30", "postgres.connections=5", "65"},
		"Pooler":     {"a pooler: 23 × (4 + 2) + 2 × 20 + 30", "api.replicas=20,postgres.cnpg.pooler.enabled=true", "208"},
		"Explicit":   {"the administrator's value wins", "postgres.cnpg.parameters.max_connections=77", "77"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := parse(t, render(t, "-f", "testdata/values/external.yaml", "-s", "templates/cnpg.yaml", "--set", "postgres.mode=cnpg", "--set", tc.set))
			if got := objects[0].at("spec", "postgresql", "parameters", "max_connections"); got != tc.want {
				t.Errorf("max_connections with %s: %v, want %s: %s", tc.set, got, tc.want, tc.reason)
			}
		})
	}
}

// A single instance has no standby to wait for.
func TestSynchronousReplicationNeedsAStandby(t *testing.T) {
	t.Parallel()
	for instances, want := range map[string]bool{"1": false, "2": true, "3": true} {
		objects := parse(t, render(t, "-f", "testdata/values/external.yaml", "-s", "templates/cnpg.yaml",
			"--set", "postgres.mode=cnpg,postgres.cnpg.instances="+instances))
		if got := objects[0].at("spec", "postgresql", "synchronous") != nil; got != want {
			t.Errorf("synchronous replication with %s instances: %t, want %t", instances, got, want)
		}
	}
}

// Another recovery changes the identity of the database, even if the Cluster has the same name. To remove
// the values of a recovery, its identity can be set (docs/backup.md).
func TestRecoveryIdentifiesTheDatabase(t *testing.T) {
	t.Parallel()
	id := func(set string) string {
		t.Helper()
		manifest := render(t, "-f", "testdata/values/external.yaml", "-s", "templates/erasures.yaml",
			"--set", "postgres.mode=cnpg,erasureLedger.enabled=true,"+set)
		_, after, _ := strings.Cut(manifest, "{name: MNEMO_RESTORE_ID, value: ")
		value, _, _ := strings.Cut(after, "}")
		return strings.Trim(value, `"`)
	}
	first := id("postgres.cnpg.recovery.source=a")
	if another := id("postgres.cnpg.recovery.source=b"); first == "" || another == first {
		t.Errorf("the identities after two recoveries are %q and %q, want different ones", first, another)
	}
	if removed := id("erasureLedger.restoreID=" + first); removed != first {
		t.Errorf("the identity without the values of the recovery is %q, want %q", removed, first)
	}
}
