package charts_test

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

const restoredDump = "mnemo-20261122T021700Z.dump"

// TestRestoreStopsEverythingElse runs the helm commands of docs/backup.md, "Restore a
// dump": nothing serves while the database is replaced, and the next upgrade
// starts everything again.
func TestRestoreStopsEverythingElse(t *testing.T) {
	t.Parallel()
	t.Run("with a fixed number of replicas", func(t *testing.T) {
		t.Parallel()
		r := installRelease(t, "api.replicas=2,backup.enabled=true")
		r.expectReplicas("2 1")
		r.upgrade("--set", "backup.restore="+restoredDump)
		r.expectReplicas("0 0")
		r.expectJob("mnemo-restore-2")
		r.upgrade()
		r.expectReplicas("2 1")
		r.expectJob("mnemo-migrate-3")
	})
	t.Run("with an autoscaler", func(t *testing.T) {
		t.Parallel()
		r := installRelease(t, "api.autoscaling.enabled=true,backup.enabled=true")
		r.expectAutoscaler(true)
		r.upgrade("--set", "backup.restore="+restoredDump)
		r.expectAutoscaler(false)
		r.expectReplicas("0 0")
		r.upgrade()
		r.expectAutoscaler(true)
		if got := r.replicas(); got != "1 1" && got != "2 1" { // the autoscaler may have raised it to its minimum
			t.Errorf("replicas of API server and operator: %q, want 1 or 2 and 1", got)
		}
	})
}

// job returns the name of the only Job of the release: a migration must not run during a restore.
func (r *testRelease) job() string {
	r.t.Helper()
	out, err := tryKubectl(r.t, "", "-n", r.namespace, "get", "jobs", "-o", "jsonpath={.items[*].metadata.name}")
	if err != nil {
		r.t.Fatalf("get jobs: %v\n%s", err, out)
	}
	names := strings.Fields(out)
	if len(names) != 1 {
		r.t.Fatalf("Jobs %q, want one", names)
	}
	return names[0]
}

// expectJob fails unless the name of the only Job has the prefix.
func (r *testRelease) expectJob(prefix string) {
	r.t.Helper()
	if name := r.job(); !strings.HasPrefix(name, prefix) {
		r.t.Errorf("Job %s, want one named %s…", name, prefix)
	}
}

// TestRollbackDoesNotRestoreAgain: a rollback to the revision of a restore creates its Job again. Its name and its UID, by which
// its script recognizes that, are those of Kubernetes.
func TestRollbackDoesNotRestoreAgain(t *testing.T) {
	t.Parallel()
	r := installRelease(t, "backup.enabled=true")
	r.upgrade("--set", "backup.restore="+restoredDump)
	name := r.job()
	r.upgrade()
	r.helm("rollback", "mnemo", "2")
	if again := r.job(); again != name {
		t.Errorf("Job %s after the rollback, want %s", again, name)
	}
	for _, o := range parse(t, render(t, "-f", "testdata/values/restore.yaml", "-s", "templates/backup.yaml")) {
		if o.kind() != "Job" {
			continue
		}
		env := map[any]any{}
		for _, e := range list(list(o.at("spec", "template", "spec", "initContainers"))[0]["env"]) {
			env[e["name"]] = object(e).at("valueFrom", "fieldRef", "fieldPath")
		}
		if env["JOB_NAME"] != "metadata.labels['batch.kubernetes.io/job-name']" || env["JOB_UID"] != "metadata.labels['batch.kubernetes.io/controller-uid']" {
			t.Errorf("environment %v, want the labels of the Job", env)
		}
	}
}

// TestLedgerVolumeIsFixed: the claim template of a StatefulSet is immutable. An upgrade that changes it fails before it changes
// anything else, and the commands of the runbook enlarge the volume.
func TestLedgerVolumeIsFixed(t *testing.T) {
	t.Parallel()
	r := installRelease(t, "api.replicas=2,erasureLedger.enabled=true")
	r.upgrade("--set", "erasureLedger.volume.size=1024Mi") // the same size
	for _, change := range []string{"size=5Gi", "storageClass=fast", "existingClaim=other"} {
		args := append(append([]string{"upgrade"}, r.chart...), "--set", "api.replicas=3,erasureLedger.volume."+change)
		_, err := helm(t, append(args, "-n", r.namespace, "--kubeconfig", testkit.KubeConfigFile(t))...)
		if err == nil || !strings.Contains(err.Error(), "erasureLedger.volume cannot be changed") {
			t.Errorf("helm upgrade with erasureLedger.volume.%s: %v, want an error that says that it cannot be changed", change, err)
		}
		r.expectReplicas("2 1")
	}
	r.kubectl("delete", "statefulset", "mnemo-erasures", "--cascade=orphan")
	r.upgrade("--set", "erasureLedger.volume.size=5Gi")
	const size = "{.spec.volumeClaimTemplates[0].spec.resources.requests.storage}"
	if got, err := tryKubectl(t, "", "-n", r.namespace, "get", "statefulset", "mnemo-erasures", "-o", "jsonpath="+size); err != nil || got != "5Gi" {
		t.Errorf("size %s, %v, want 5Gi", got, err)
	}
}

// backupVolume is a database and the directory of its dumps.
type backupVolume struct {
	t        *testing.T
	database postgrestest.Database
	dir      string
	// dump and restore are the scripts of the CronJob and of the restore Job.
	dump, restore string
}

func newBackupVolume(t *testing.T, set ...string) *backupVolume {
	t.Helper()
	args := append([]string{"-f", "testdata/values/restore.yaml", "-s", "templates/backup.yaml"}, set...)
	objects := parse(t, render(t, args...))
	return &backupVolume{
		t: t, database: postgrestest.Create(t), dir: t.TempDir(), dump: script(t, objects, "CronJob"), restore: script(t, objects, "Job"),
	}
}

// try runs a script as its container does, with the directory instead of /backup, and returns its output.
func (v *backupVolume) try(text string, env ...string) (string, error) {
	v.t.Helper()
	app, err := url.Parse(v.database.AppURL)
	if err != nil {
		v.t.Fatal(err)
	}
	cmd := exec.CommandContext(v.t.Context(), "/bin/sh", "-euc", strings.ReplaceAll(text, "/backup", v.dir))
	cmd.Env = slices.Concat(os.Environ(), []string{"DATABASE_OWNER_URL=" + v.database.OwnerURL, "APP_ROLE=" + app.User.Username(),
		"PATH=" + testkit.PostgresClients(v.t) + ":" + os.Getenv("PATH")}, env)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// run runs a script that must succeed.
func (v *backupVolume) run(text string, env ...string) {
	v.t.Helper()
	if out, err := v.try(text, env...); err != nil {
		v.t.Fatalf("%s\n%v\n%s", text, err, out)
	}
}

// expectFailure runs a script that must fail and print the text.
func (v *backupVolume) expectFailure(want, text string, env ...string) {
	v.t.Helper()
	out, err := v.try(text, env...)
	if err == nil || !strings.Contains(out, want) {
		v.t.Errorf("error %v, want one and the output %q:\n%s", err, want, out)
	}
}

func (v *backupVolume) execute(sql string) {
	v.t.Helper()
	v.run(`psql -q -v ON_ERROR_STOP=1 -c "` + sql + `" "$DATABASE_OWNER_URL"`)
}

// expectRows compares the ids in the table kept.
func (v *backupVolume) expectRows(want string) {
	v.t.Helper()
	out, err := v.try(`psql -Atc 'select array_agg(id order by id) from kept' "$DATABASE_OWNER_URL"`)
	if got := strings.TrimSpace(out); err != nil || got != want {
		v.t.Errorf("rows %s, %v, want %s", got, err, want)
	}
}

// create writes empty files.
func (v *backupVolume) create(names ...string) {
	v.t.Helper()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(v.dir, name), nil, 0o600); err != nil {
			v.t.Fatal(err)
		}
	}
}

// files returns the names of the dumps, complete and partial, in their order.
func (v *backupVolume) files() (names []string) {
	v.t.Helper()
	files, err := filepath.Glob(filepath.Join(v.dir, "mnemo-*"))
	if err != nil {
		v.t.Fatal(err)
	}
	for _, file := range files {
		names = append(names, filepath.Base(file))
	}
	return names
}

func (v *backupVolume) expectFiles(want ...string) {
	v.t.Helper()
	if diff := cmp.Diff(want, v.files()); diff != "" {
		v.t.Errorf("files (-want +got):\n%s", diff)
	}
}

// TestBackupScripts runs the scripts of the CronJob and the restore Job with the
// real PostgreSQL.
func TestBackupScripts(t *testing.T) {
	t.Parallel()
	v := newBackupVolume(t, "--set", "backup.keep=2")
	v.execute("create table kept (id int); insert into kept values (1)")
	v.create("mnemo-20250101T000000Z.dump", "mnemo-20250102T000000Z.dump", "mnemo-20250103T000000Z.dump.partial")
	v.run(v.dump, "JOB_UID=first")
	files := v.files()
	if len(files) != 2 || files[0] != "mnemo-20250102T000000Z.dump" {
		t.Fatalf("files after a dump: %q, want the new dump and the newer of the old ones", files)
	}
	dump := "DUMP=" + files[1]
	v.execute("insert into kept values (2)")
	v.run(v.restore, dump, "JOB_NAME=mnemo-restore-2", "JOB_UID=second")
	v.expectRows("{1}")
	// A database that was restored once can be dumped and restored again.
	v.run(v.dump, "JOB_UID=third")
	v.run(v.restore, dump, "JOB_NAME=mnemo-restore-4", "JOB_UID=fourth")
}

// TestBackupIsNotRepeated: Kubernetes repeats a Job whose upload failed.
func TestBackupIsNotRepeated(t *testing.T) {
	t.Parallel()
	v := newBackupVolume(t, "--set", "backup.keep=1")
	v.run(v.dump, "JOB_UID=first")
	files := v.files()
	v.run(v.dump+"\nfalse", "JOB_UID=first") // it ends before the script does
	v.expectFiles(files...)
}

// TestFailedDumpLeavesSpace: a dump on a full volume fails. Its partial file is deleted, and so are the dumps above backup.keep.
func TestFailedDumpLeavesSpace(t *testing.T) {
	t.Parallel()
	v := newBackupVolume(t, "--set", "backup.keep=2")
	v.create("mnemo-20250101T000000Z.dump", "mnemo-20250102T000000Z.dump", "mnemo-20250103T000000Z.dump")
	const full = `pg_dump() { echo half > "${3#--file=}"; echo "No space left on device"; return 1; }` + "\n"
	v.expectFailure("No space left on device", full+v.dump, "JOB_UID=first")
	v.expectFiles("mnemo-20250102T000000Z.dump", "mnemo-20250103T000000Z.dump")
}

// TestRestoreRunsOnce: the data written since a restore stays when `helm rollback` creates the Job again.
func TestRestoreRunsOnce(t *testing.T) {
	t.Parallel()
	v := newBackupVolume(t)
	v.execute("create table kept (id int); insert into kept values (1)")
	v.run(v.dump, "JOB_UID=backup")
	dump := "DUMP=" + v.files()[0]
	v.run(v.restore, dump, "JOB_NAME=mnemo-restore-5", "JOB_UID=first")
	v.execute("insert into kept values (2)")
	v.run(v.restore, dump, "JOB_NAME=mnemo-restore-5", "JOB_UID=first") // the migration failed and is repeated
	v.expectRows("{1,2}")
	v.expectFailure("a restore runs once", v.restore, dump, "JOB_NAME=mnemo-restore-5", "JOB_UID=rollback")
	v.expectRows("{1,2}")
	v.run(v.restore, dump, "JOB_NAME=mnemo-restore-8", "JOB_UID=again")
	v.expectRows("{1}")
}

// TestFailedRestoreIsNotRepeatedByRollback: the users of a release that continued without the restore keep their data, too.
func TestFailedRestoreIsNotRepeatedByRollback(t *testing.T) {
	t.Parallel()
	v := newBackupVolume(t)
	v.execute("create table kept (id int); insert into kept values (1)")
	v.run(v.dump, "JOB_UID=backup")
	dump := "DUMP=" + v.files()[0]
	v.expectFailure("connection", v.restore, dump, "JOB_NAME=mnemo-restore-5", "JOB_UID=first", "DATABASE_OWNER_URL=postgres://127.0.0.1:1/mnemo")
	v.execute("insert into kept values (2)")
	v.expectFailure("a restore runs once", v.restore, dump, "JOB_NAME=mnemo-restore-5", "JOB_UID=rollback")
	v.expectRows("{1,2}")
	v.run(v.restore, dump, "JOB_NAME=mnemo-restore-5", "JOB_UID=first") // Kubernetes repeats the pod
	v.expectRows("{1}")
}

// TestRestoreNamesTheDumps: a mistyped name changes nothing.
func TestRestoreNamesTheDumps(t *testing.T) {
	t.Parallel()
	v := newBackupVolume(t)
	v.execute("create table kept (id int); insert into kept values (1)")
	v.create(restoredDump)
	job := []string{"DUMP=mnemo-20261122.dump", "JOB_NAME=mnemo-restore-5", "JOB_UID=first"}
	v.expectFailure("no such dump: mnemo-20261122.dump", v.restore, job...)
	v.expectFailure(restoredDump, v.restore, job...)
	v.expectRows("{1}")
}

// TestBackupsEnd: with concurrencyPolicy Forbid, a Job that hangs would prevent all further ones. The pods of failed Jobs
// keep their logs.
func TestBackupsEnd(t *testing.T) {
	t.Parallel()
	for _, o := range parse(t, render(t, "-f", "testdata/values/restore.yaml", "-s", "templates/backup.yaml", "--set", "backup.activeDeadlineSeconds=1000000")) {
		switch o.kind() {
		case "CronJob":
			if got := o.at("spec", "jobTemplate", "spec", "activeDeadlineSeconds"); got != 1000000 {
				t.Errorf("activeDeadlineSeconds %v, want 1000000", got)
			}
			if got := o.at("spec", "jobTemplate", "spec", "template", "spec", "restartPolicy"); got != "Never" {
				t.Errorf("restartPolicy of backups %v, want Never", got)
			}
		case "Job":
			if got := o.at("spec", "template", "spec", "restartPolicy"); got != "Never" {
				t.Errorf("restartPolicy of the restore %v, want Never", got)
			}
		}
	}
}

// Containers that upload run after the dump has succeeded.
func TestUploadFollowsDump(t *testing.T) {
	t.Parallel()
	const upload = `backup.uploadContainers=[{"name":"upload","image":"rclone","volumeMounts":[{"name":"backup","mountPath":"/backup"}]}]`
	objects := parse(t, render(t, "-f", "testdata/values/everything.yaml", "-s", "templates/backup.yaml", "--set-json", upload))
	for _, o := range objects {
		if o.kind() != "CronJob" {
			continue
		}
		pod := []string{"spec", "jobTemplate", "spec", "template", "spec"}
		first, second := list(o.at(append(pod, "initContainers")...)), list(o.at(append(pod, "containers")...))
		if len(first) != 1 || first[0]["name"] != "dump" || len(second) != 1 || second[0]["name"] != "upload" {
			t.Errorf("init containers %v, containers %v, want dump, then upload", first, second)
		}
		return
	}
	t.Error("no CronJob")
}

// TestErasureRecorderLeavesBrokenRevision: with OrderedReady, Kubernetes never replaces a pod that does not become ready, so that
// neither a rollback nor erasureLedger.acceptLoss would reach it.
func TestErasureRecorderLeavesBrokenRevision(t *testing.T) {
	t.Parallel()
	for _, o := range parse(t, render(t, "-f", "testdata/values/everything.yaml", "-s", "templates/erasures.yaml")) {
		if got := o.at("spec", "podManagementPolicy"); got != "Parallel" {
			t.Errorf("podManagementPolicy of %s %s: %v, want Parallel", o.kind(), o.name(), got)
		}
	}
}

// script returns the script of the first container with the image of PostgreSQL.
func script(t *testing.T, objects []object, kind string) string {
	t.Helper()
	for _, o := range objects {
		if o.kind() != kind {
			continue
		}
		spec := o.at("spec", "template", "spec")
		if kind == "CronJob" {
			spec = o.at("spec", "jobTemplate", "spec", "template", "spec")
		}
		pod := object(spec.(map[string]any))
		for _, c := range append(list(pod["initContainers"]), list(pod["containers"])...) {
			if args, ok := c["args"].([]any); ok && strings.Contains(fmt.Sprint(c["image"]), "postgres") {
				return fmt.Sprint(args[0])
			}
		}
	}
	t.Fatalf("no %s with a script", kind)
	return ""
}

// testRelease is a release of the chart on the real kube-apiserver.
type testRelease struct {
	t         *testing.T
	namespace string
	chart     []string // arguments of helm install and helm upgrade
}

func installRelease(t *testing.T, set string) *testRelease {
	t.Helper()
	installing.RLock()
	t.Cleanup(installing.RUnlock)
	r := newRelease(t, set)
	t.Cleanup(func() { uninstall(t, r.namespace) })
	r.helm(append([]string{"install"}, r.chart...)...)
	return r
}

// newRelease returns a release that is not installed yet, in its own namespace.
func newRelease(t *testing.T, set string) *testRelease {
	t.Helper()
	r := &testRelease{t: t, namespace: newNamespace(t)}
	r.chart = []string{
		"mnemo", chart, "-f", "testdata/values/claim.yaml",
		"--set", "gateway.enabled=false,operator.watchNamespaces={" + r.namespace + "}," + set,
	}
	return r
}

func (r *testRelease) helm(args ...string) {
	r.t.Helper()
	if out, err := helm(r.t, append(args, "-n", r.namespace, "--kubeconfig", testkit.KubeConfigFile(r.t))...); err != nil {
		r.t.Fatalf("helm %s: %v\n%s", args[0], err, out)
	}
}

func (r *testRelease) kubectl(args ...string) {
	r.t.Helper()
	kubectl(r.t, "", append([]string{"-n", r.namespace}, args...)...)
}

func (r *testRelease) upgrade(args ...string) {
	r.t.Helper()
	r.helm(append(append([]string{"upgrade"}, r.chart...), args...)...)
}

// replicas returns the replicas of the API server and of the operator.
func (r *testRelease) replicas() string {
	r.t.Helper()
	got, err := tryKubectl(r.t, "", "-n", r.namespace, "get", "deployment", "mnemo-api", "mnemo-operator", "-o", "jsonpath={.items[*].spec.replicas}")
	if err != nil {
		r.t.Fatalf("get replicas: %v\n%s", err, got)
	}
	return strings.TrimSpace(got)
}

func (r *testRelease) expectReplicas(want string) {
	r.t.Helper()
	if got := r.replicas(); got != want {
		r.t.Errorf("replicas of API server and operator: %q, want %q", got, want)
	}
}

func (r *testRelease) expectAutoscaler(want bool) {
	r.t.Helper()
	out, err := tryKubectl(r.t, "", "-n", r.namespace, "get", "horizontalpodautoscaler", "-o", "name")
	if err != nil {
		r.t.Fatalf("get autoscalers: %v\n%s", err, out)
	}
	if got := strings.Contains(out, "mnemo-api"); got != want {
		r.t.Errorf("autoscaler exists: %v, want %v", got, want)
	}
}
