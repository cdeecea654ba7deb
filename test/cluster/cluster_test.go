package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const namespace = "mnemo-system"

// cluster is the running cluster of this package's tests.
var cluster *testCluster

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/cluster:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "mnemo-cluster-")
	if err != nil {
		return 1, err
	}
	// PostgreSQL runs as another user and must be able to traverse the directory.
	if err := os.Chmod(dir, 0o711); err != nil {
		return 1, err
	}
	tools := make(chan error, 1)
	go func() { tools <- prepareMonitor(context.Background()) }()
	cluster, err = startCluster(dir)
	err = errors.Join(err, <-tools)
	defer func() {
		if code == 0 && err == nil {
			err = errors.Join(cluster.down(), os.RemoveAll(dir))
			return
		}
		cluster.dump()
		err = errors.Join(err, cluster.down())
		fmt.Fprintln(os.Stderr, "test/cluster: the logs of the cluster are in", dir)
	}()
	if err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// testCluster is a cluster started with `hack/cluster up`; env is the content of its
// cluster.env.
type testCluster struct {
	root, top, dir string
	program        string
	input          *os.File // the write end of its standard input: closing it stops the cluster
	env            map[string]string
}

// startCluster builds hack/cluster and starts a cluster with its files in top.
func startCluster(top string) (*testCluster, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return nil, err
	}
	c := &testCluster{root: root, top: top, dir: filepath.Join(top, "cluster"), program: filepath.Join(top, "program")}
	if out, err := c.in(exec.Command("go", "build", "-o", c.program, "./hack/cluster")).CombinedOutput(); err != nil {
		return c, fmt.Errorf("build hack/cluster: %w\n%s", err, out)
	}
	// The cluster stops when this process ends, even if it is killed.
	reader, writer, err := os.Pipe()
	if err != nil {
		return c, err
	}
	defer reader.Close()
	c.input = writer
	cmd := c.in(exec.Command(c.program, "up", "-attached", "-dir", c.dir))
	cmd.Stdin = reader
	out, err := cmd.CombinedOutput()
	if err != nil {
		return c, fmt.Errorf("start the cluster: %w\n%s", err, out)
	}
	c.env, err = readEnv(c.dir + ".env")
	return c, err
}

// in sets a command's directory to the root of the checkout and its KUBECONFIG to the
// cluster's.
func (c *testCluster) in(cmd *exec.Cmd) *exec.Cmd {
	cmd.Dir = c.root
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.env["KUBECONFIG"])
	return cmd
}

// down deletes the cluster. Leftovers are an error.
func (c *testCluster) down() error {
	if out, err := c.in(exec.Command(c.program, "down", "-dir", c.dir)).CombinedOutput(); err != nil {
		return fmt.Errorf("delete the cluster: %w\n%s", err, out)
	}
	return nil
}

// dump saves the state and the logs of the cluster for diagnosis before it is deleted.
func (c *testCluster) dump() {
	if c.env != nil {
		_ = c.in(exec.Command(c.env["KUBECTL"], "cluster-info", "dump", "--namespaces", namespace+","+demoNamespace+","+olmNamespace+",default",
			"--output-directory", filepath.Join(c.top, "dump"), "--output", "yaml")).Run()
	}
	_ = os.CopyFS(filepath.Join(c.top, "logs"), os.DirFS(filepath.Join(c.dir, "logs")))
}

func readEnv(file string) (map[string]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	env := map[string]string{}
	for line := range strings.Lines(string(data)) {
		name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		if ok {
			env[name] = strings.Trim(value, "'")
		}
	}
	return env, nil
}

// try runs a command in the root of the checkout and returns its standard output.
func try(ctx context.Context, input, name string, args ...string) (string, error) {
	cmd := cluster.in(exec.CommandContext(ctx, name, args...))
	var out, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &stderr
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(name), strings.Join(args, " "), err, &out, &stderr)
	}
	return out.String(), nil
}

func kubectl(t *testing.T, input string, args ...string) string {
	t.Helper()
	out, err := try(t.Context(), input, cluster.env["KUBECTL"], args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

func tryHelm(ctx context.Context, args ...string) error {
	_, err := try(ctx, "", "hack/tool.sh", append([]string{"helm", "--namespace", namespace}, args...)...)
	return err
}

func helm(t *testing.T, args ...string) {
	t.Helper()
	if err := tryHelm(t.Context(), args...); err != nil {
		t.Fatal(err)
	}
}

// upgrade upgrades the release, reusing its values and setting the given ones.
func upgrade(t *testing.T, set ...string) {
	t.Helper()
	helm(t, "upgrade", "mnemo", "charts/mnemo", "--reset-then-reuse-values", "--set", strings.Join(set, ","), "--wait", "--timeout", "5m")
}

// eventually calls check, which often starts kubectl, every 500 ms until it returns no problem.
func eventually(t *testing.T, within time.Duration, check func() string) {
	t.Helper()
	for deadline := time.Now().Add(within); ; {
		problem := check()
		if problem == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s: %s", within, problem)
		}
		<-time.After(500 * time.Millisecond)
	}
}

// ready returns the names of a component's pods that are ready and not terminating.
func ready(t *testing.T, component string) []string {
	t.Helper()
	const columns = `{range .items[?(@.status.containerStatuses[0].ready==true)]}{.metadata.name}:{.metadata.deletionTimestamp}{"\n"}{end}`
	var names []string
	for pod := range strings.FieldsSeq(kubectl(t, "", "get", "pods", "--namespace", namespace,
		"--selector", "app.kubernetes.io/component="+component, "--output", "jsonpath="+columns)) {
		if name, deleted, _ := strings.Cut(pod, ":"); deleted == "" {
			names = append(names, name)
		}
	}
	return names
}

// applyTenant applies a Tenant with one user, waits until it is Ready, and returns the
// user's token.
func applyTenant(t *testing.T, name, quota string) string {
	t.Helper()
	kubectl(t, tenant(name, quota), "apply", "--filename", "-")
	kubectl(t, "", "wait", "--for=condition=Ready", "--timeout=120s", "tenant/"+name)
	return kubectl(t, "", "get", "secret", name+"-u-access", "--output", "go-template={{.data.token | base64decode}}")
}

// outgrow marks a Tenant as if one of its users had outgrown exact scoring, and waits until it is in
// the index.
func outgrow(t *testing.T, name string) {
	t.Helper()
	db := database(t)
	execute(t, db, "update tenants set outgrown_at = now() where name = $1", name)
	eventually(t, 2*time.Minute, func() string {
		var indexed bool
		err := db.QueryRow(t.Context(), "select p.collection <> '' from placements p join tenants t on t.id = p.tenant_id where t.name = $1", name).Scan(&indexed)
		if err != nil || !indexed {
			return fmt.Sprintf("the Tenant is in no index, %v", err)
		}
		return ""
	})
}

// highQuota is a quota that no test reaches.
const highQuota = `{"requestsPerMinute":100000,"memories":100000}`

// tenant returns the manifest of a Tenant with one user, u.
func tenant(name, quota string) string {
	return fmt.Sprintf(`{"apiVersion":"mnemo.dev/v1alpha1","kind":"Tenant","metadata":{"name":%q,"namespace":"default"},
		"spec":{"users":[{"name":"u"}],"quota":%s}}`, name, quota)
}
