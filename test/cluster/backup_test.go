package cluster_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/api/client"
)

var dumpName = regexp.MustCompile(`mnemo-\w+\.dump`)

// backUpAndRestore runs the CronJob of the chart's backups and the commands of docs/backup.md, "Restore a dump". A memory that
// was deleted after the backup stays deleted, and one that was created after it is lost.
func backUpAndRestore(t *testing.T) {
	images, err := try(t.Context(), "", cluster.program, "demo", "-dir", cluster.dir)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Split(strings.TrimSpace(images), ",")
	i := slices.IndexFunc(all, func(value string) bool { return strings.HasPrefix(value, "backup.image=") })
	for _, name := range []string{"backup", "ledger"} {
		createVolume(t, name)
	}
	upgrade(t, "backup.enabled=true", all[i], "backup.volume.size=1Gi", "erasureLedger.volume.size=1Gi")

	user := connect(t, cluster.env["MNEMO_TOKEN"])
	before := texts(t, user)
	remember(t, user, "The spare key is under the stone.")
	erased := remember(t, user, "The safe's combination is 4711.")
	dump := backUp(t)
	if _, err := user.DeleteMemory(t.Context(), erased); err != nil {
		t.Fatal(err)
	}
	remember(t, user, "The spare key is in the shed.")
	waitForLedger(t)

	upgrade(t, "backup.restore="+dump)
	kubectl(t, "", "wait", "--namespace", namespace, "--for=condition=Complete", "job", "--selector", "app.kubernetes.io/component=restore", "--timeout=5m")
	if got := slices.Concat(ready(t, "api"), ready(t, "operator")); len(got) != 0 {
		t.Errorf("pods %q run during the restore, want none", got)
	}
	upgrade(t, "backup.restore=")
	want := append(before, "The spare key is under the stone.")
	slices.Sort(want)
	if diff := cmp.Diff(want, texts(t, user)); diff != "" {
		t.Errorf("memories after the restore (-want +got):\n%s", diff)
	}
	if log := kubectl(t, "", "logs", "mnemo-erasures-0", "--namespace", namespace, "--tail=20"); !strings.Contains(log, "erasures repeated") {
		t.Errorf("log of the erasure ledger does not contain %q:\n%s", "erasures repeated", log)
	}
	disableBackups(t)
}

// backUp starts a Job of the CronJob and returns the name of the dump.
func backUp(t *testing.T) string {
	t.Helper()
	kubectl(t, "", "create", "job", "backup-now", "--namespace", namespace, "--from=cronjob/mnemo-backup")
	kubectl(t, "", "wait", "--namespace", namespace, "--for=condition=Complete", "job/backup-now", "--timeout=5m")
	log := kubectl(t, "", "logs", "job/backup-now", "--namespace", namespace, "--tail=-1")
	dumps := dumpName.FindAllString(log, -1)
	if len(dumps) != 1 {
		t.Fatalf("the log of the backup lists %d dumps, want 1:\n%s", len(dumps), log)
	}
	return dumps[0]
}

// waitForLedger waits until all erasures are in the ledger.
func waitForLedger(t *testing.T) {
	t.Helper()
	db := database(t)
	eventually(t, time.Minute, func() string {
		var pending int
		if err := db.QueryRow(t.Context(), "select count(*) from erasures").Scan(&pending); err != nil {
			t.Fatal(err)
		}
		if pending > 0 {
			return fmt.Sprintf("%d erasures are not in the ledger", pending)
		}
		return ""
	})
}

// disableBackups follows "Switch the ledger off" in docs/backup.md, and deletes the volumes, which the chart keeps.
func disableBackups(t *testing.T) {
	t.Helper()
	upgrade(t, "backup.enabled=false")
	kubectl(t, "", "exec", "deployment/mnemo-api", "--namespace", namespace, "--", "/mnemo", "erasures", "stop")
	kubectl(t, "", "delete", "persistentvolumeclaims", "--all", "--namespace", namespace, "--timeout=60s")
	kubectl(t, "", "delete", "persistentvolumes", "backup", "ledger", "--timeout=60s")
}

// remember stores a memory and returns its ID.
func remember(t *testing.T, user *client.Client, text string) string {
	t.Helper()
	created, err := user.CreateMemory(t.Context(), nil, client.CreateMemoryRequest{Text: text})
	if err != nil {
		t.Fatal(err)
	}
	return created.Body.MemoryID
}

// texts returns the texts of a user's memories, sorted.
func texts(t *testing.T, user *client.Client) []string {
	t.Helper()
	answer, err := user.ListMemories(t.Context(), &client.ListMemoriesParams{})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range answer.Body.Memories {
		all = append(all, m.Text)
	}
	slices.Sort(all)
	return all
}
