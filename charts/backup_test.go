package charts_test

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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

// expectJob fails unless the release has one Job, and its name has the prefix: a
// migration must not run during a restore.
func (r *testRelease) expectJob(prefix string) {
	r.t.Helper()
	out, err := tryKubectl(r.t, "", "-n", r.namespace, "get", "jobs", "-o", "jsonpath={.items[*].metadata.name}")
	if err != nil {
		r.t.Fatalf("get jobs: %v\n%s", err, out)
	}
	if names := strings.Fields(out); len(names) != 1 || !strings.HasPrefix(names[0], prefix) {
		r.t.Errorf("Jobs %q, want one named %s…", names, prefix)
	}
}

// TestBackupScripts runs the scripts of the CronJob and the restore Job with the
// real PostgreSQL.
func TestBackupScripts(t *testing.T) {
	t.Parallel()
	d, dir := postgrestest.Create(t), t.TempDir()
	objects := parse(t, render(t, "-f", "testdata/values/restore.yaml", "-s", "templates/backup.yaml", "--set", "backup.keep=2"))
	dump, restore := script(t, objects, "CronJob"), script(t, objects, "Job")
	execute := func(sql string) {
		t.Helper()
		runScript(t, dir, d, `psql -q -v ON_ERROR_STOP=1 -c "`+sql+`" "$DATABASE_OWNER_URL"`)
	}
	execute("create table kept (id int); insert into kept values (1)")
	for _, old := range []string{"mnemo-20250101T000000Z.dump", "mnemo-20250102T000000Z.dump", "mnemo-20250103T000000Z.dump.partial"} {
		if err := os.WriteFile(filepath.Join(dir, old), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	runScript(t, dir, d, dump)
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 2 || filepath.Base(files[0]) != "mnemo-20250102T000000Z.dump" {
		t.Fatalf("files after a dump: %q, want the new dump and the newer of the old ones", files)
	}
	execute("insert into kept values (2)")
	runScript(t, dir, d, restore, "DUMP="+filepath.Base(files[1]))
	runScript(t, dir, d, `test "$(psql -Atc 'select array_agg(id) from kept' "$DATABASE_OWNER_URL")" = "{1}"`)
	// A database that was restored once can be dumped and restored again.
	runScript(t, dir, d, dump+"\n"+restore, "DUMP="+filepath.Base(files[1]))
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

// runScript runs a script as its container does, with dir instead of /backup.
func runScript(t *testing.T, dir string, d postgrestest.Database, text string, env ...string) {
	t.Helper()
	app, err := url.Parse(d.AppURL)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-euc", strings.ReplaceAll(text, "/backup", dir))
	cmd.Env = append(os.Environ(), append(env, "DATABASE_OWNER_URL="+d.OwnerURL, "APP_ROLE="+app.User.Username(),
		"PATH="+testkit.PostgresClients(t)+":"+os.Getenv("PATH"))...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s\n%v\n%s", text, err, out)
	}
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
