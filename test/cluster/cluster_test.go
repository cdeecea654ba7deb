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

// cluster is the one `make cluster` of this package.
var cluster *up

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e/cluster:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "mnemo-cluster-")
	if err != nil {
		return 1, err
	}
	// PostgreSQL runs as another user and must pass through.
	if err := os.Chmod(dir, 0o711); err != nil {
		return 1, err
	}
	tools := make(chan error, 1)
	go func() { tools <- prepareWatch(context.Background()) }()
	cluster, err = bringUp(dir)
	err = errors.Join(err, <-tools)
	defer func() {
		if code == 0 && err == nil {
			err = errors.Join(cluster.down(), os.RemoveAll(dir))
			return
		}
		cluster.dump()
		err = errors.Join(err, cluster.down())
		fmt.Fprintln(os.Stderr, "e2e/cluster: what the cluster said is kept in", dir)
	}()
	if err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// up is a running `hack/cluster up` and what it wrote into cluster.env.
type up struct {
	root, top, dir string
	program        string
	held           *os.File // the cluster's standard input
	env            map[string]string
}

// bringUp builds hack/cluster and brings a cluster up below top.
func bringUp(top string) (*up, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return nil, err
	}
	c := &up{root: root, top: top, dir: filepath.Join(top, "cluster"), program: filepath.Join(top, "program")}
	if out, err := c.in(exec.Command("go", "build", "-o", c.program, "./hack/cluster")).CombinedOutput(); err != nil {
		return c, fmt.Errorf("build hack/cluster: %w\n%s", err, out)
	}
	// However this process ends, the cluster ends with it.
	input, held, err := os.Pipe()
	if err != nil {
		return c, err
	}
	defer input.Close()
	c.held = held
	cmd := c.in(exec.Command(c.program, "up", "-attached", "-dir", c.dir))
	cmd.Stdin = input
	out, err := cmd.CombinedOutput()
	if err != nil {
		return c, fmt.Errorf("the cluster does not come up: %w\n%s", err, out)
	}
	c.env, err = readEnv(c.dir + ".env")
	return c, err
}

// in runs a command at the top of the checkout with the cluster's variables.
func (c *up) in(cmd *exec.Cmd) *exec.Cmd {
	cmd.Dir = c.root
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.env["KUBECONFIG"])
	return cmd
}

// down takes the cluster down; that something of it is left is an error.
func (c *up) down() error {
	if out, err := c.in(exec.Command(c.program, "down", "-dir", c.dir)).CombinedOutput(); err != nil {
		return fmt.Errorf("take the cluster down: %w\n%s", err, out)
	}
	return nil
}

// dump keeps what would explain a failure, before the cluster is taken down.
func (c *up) dump() {
	if c.env != nil {
		_ = c.in(exec.Command(c.env["KUBECTL"], "cluster-info", "dump", "--namespaces", namespace+","+trialHome+",default",
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

// try runs a command at the top of the checkout and returns what it printed.
func try(ctx context.Context, input, name string, args ...string) (string, error) {
	cmd := cluster.in(exec.CommandContext(ctx, name, args...))
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &said
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(name), strings.Join(args, " "), err, &out, &said)
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

// upgrade upgrades the release with the values it has and those given.
func upgrade(t *testing.T, set ...string) {
	t.Helper()
	helm(t, "upgrade", "mnemo", "charts/mnemo", "--reset-then-reuse-values", "--set", strings.Join(set, ","), "--wait", "--timeout", "5m")
}

// eventually asks every 250 ms until check finds nothing wrong.
func eventually(t *testing.T, within time.Duration, check func() string) {
	t.Helper()
	for deadline := time.Now().Add(within); ; {
		wrong := check()
		if wrong == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s: %s", within, wrong)
		}
		<-time.After(250 * time.Millisecond)
	}
}

// ready returns the names of a component's pods that are ready and not being
// deleted.
func ready(t *testing.T, component string) []string {
	t.Helper()
	const columns = `{range .items[?(@.status.containerStatuses[0].ready==true)]}{.metadata.name}:{.metadata.deletionTimestamp}{"\n"}{end}`
	var stay []string
	for pod := range strings.FieldsSeq(kubectl(t, "", "get", "pods", "--namespace", namespace,
		"--selector", "app.kubernetes.io/component="+component, "--output", "jsonpath="+columns)) {
		if name, deleted, _ := strings.Cut(pod, ":"); deleted == "" {
			stay = append(stay, name)
		}
	}
	return stay
}

// applyTenant makes a Tenant with one user, waits until it is Ready, and
// returns the user's token.
func applyTenant(t *testing.T, name, quota string) string {
	t.Helper()
	kubectl(t, tenant(name, quota), "apply", "--filename", "-")
	kubectl(t, "", "wait", "--for=condition=Ready", "--timeout=120s", "tenant/"+name)
	return kubectl(t, "", "get", "secret", name+"-u-access", "--output", "go-template={{.data.token | base64decode}}")
}

// much is a quota that no test reaches.
const much = `{"requestsPerMinute":100000,"memories":100000}`

// tenant is the manifest of one with one user, u.
func tenant(name, quota string) string {
	return fmt.Sprintf(`{"apiVersion":"mnemo.dev/v1alpha1","kind":"Tenant","metadata":{"name":%q,"namespace":"default"},
		"spec":{"users":[{"name":"u"}],"quota":%s}}`, name, quota)
}
