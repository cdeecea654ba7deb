package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// platform is the run of hack/up that all tests of this package share.
var platform *up

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "mnemo-e2e-")
	if err != nil {
		return 1, err
	}
	// For root, PostgreSQL runs as another user, who must be able to traverse it.
	if err := os.Chmod(dir, 0o711); err != nil {
		return 1, err
	}
	platform, err = startUp(dir)
	if err != nil {
		return 1, err
	}
	recorder.Next = http.DefaultTransport
	http.DefaultTransport = recorder
	defer func() {
		if stopErr := platform.stop(); stopErr != nil && err == nil {
			err = stopErr
		}
		if code == 0 && err == nil {
			err = os.RemoveAll(dir)
		} else {
			fmt.Fprintln(os.Stderr, "e2e: logs are kept in", dir)
		}
	}()
	code = m.Run()
	if leaks := platform.leaks(); len(leaks) > 0 {
		return 1, fmt.Errorf("the run left secrets behind:\n%s", strings.Join(leaks, "\n"))
	}
	return code, nil
}

// up is a running `hack/up up` with the variables from up.env.
type up struct {
	dir    string
	env    map[string]string
	cmd    *exec.Cmd
	output *bytes.Buffer
	done   chan error
	traces *collected
}

// startUp builds hack/up, runs it in dir and waits for up.env, which is
// written last.
func startUp(dir string) (*up, error) {
	bin := filepath.Join(dir, "up")
	build := exec.Command("go", "build", "-o", bin, "../../hack/up")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build hack/up: %w\n%s", err, out)
	}
	traces, err := collect()
	if err != nil {
		return nil, err
	}
	p := &up{dir: filepath.Join(dir, "data"), output: &bytes.Buffer{}, done: make(chan error, 1), traces: traces}
	p.cmd = exec.Command(bin, "up", "-dir", p.dir)
	p.cmd.Dir = "../.."
	p.cmd.Env = append(os.Environ(), "OTEL_EXPORTER_OTLP_ENDPOINT="+traces.url, "MNEMO_TRACE_RATIO=0")
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { p.done <- p.cmd.Wait() }()
	for deadline := time.Now().Add(5 * time.Minute); ; {
		env, err := readEnv(filepath.Join(p.dir, "up.env"))
		if err == nil {
			p.env = env
			return p, nil
		}
		select {
		case err := <-p.done:
			return nil, fmt.Errorf("up ended early: %w\n%s", err, p.output)
		case <-time.After(100 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			p.cmd.Process.Signal(os.Interrupt)
			return nil, fmt.Errorf("up was not ready in 5 minutes:\n%s", p.output)
		}
	}
}

// stop interrupts up like Ctrl-C and checks that it removes up.env.
func (p *up) stop() error {
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		return fmt.Errorf("interrupt up: %w", err)
	}
	select {
	case err := <-p.done:
		if err != nil {
			return fmt.Errorf("up failed: %w\n%s", err, p.output)
		}
	case <-time.After(90 * time.Second):
		p.cmd.Process.Kill()
		return fmt.Errorf("up did not stop in 90 s:\n%s", p.output)
	}
	if _, err := os.Stat(filepath.Join(p.dir, "up.env")); err == nil {
		return errors.New("up.env still exists after the platform stopped")
	}
	return nil
}

// readEnv reads the `export NAME='value'` lines of up.env.
func readEnv(file string) (map[string]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	env := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		name, value, ok := strings.Cut(strings.TrimPrefix(lines.Text(), "export "), "=")
		if ok && !strings.HasPrefix(name, "#") {
			env[name] = strings.Trim(value, `'"`)
		}
	}
	return env, nil
}

// kubectl runs kubectl with input and returns its output.
func kubectl(t *testing.T, input string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, platform.env["KUBECTL"], args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+platform.env["KUBECONFIG"])
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// applyTenant applies a Tenant with one user, alice, and waits until it is Ready.
func applyTenant(t *testing.T, name, spec string) {
	t.Helper()
	applyUsers(t, name, spec, "alice")
}

// applyUsers applies a Tenant with the users.
func applyUsers(t *testing.T, name, spec string, users ...string) {
	t.Helper()
	kubectl(t, fmt.Sprintf(`
apiVersion: mnemo.dev/v1alpha1
kind: Tenant
metadata: {name: %s, namespace: default}
spec:
  users: [{name: %s}]
%s`, name, strings.Join(users, "}, {name: "), spec), "apply", "-f", "-")
	kubectl(t, "", "wait", "--for=condition=Ready", "tenant/"+name, "--timeout=60s")
}

// secret returns a value of a user's Secret.
func secret(t *testing.T, tenant, user, key string) string {
	t.Helper()
	raw := kubectl(t, "", "get", "secret", tenant+"-"+user+"-access", "-o", "jsonpath={.data."+key+"}")
	value, err := base64.StdEncoding.DecodeString(raw)
	if err != nil {
		t.Fatalf("decode secret: %v", err)
	}
	if key != "url" {
		secrets.Add(key+" of "+tenant+"/"+user, string(value))
	}
	return string(value)
}

// suspendMilvus stops all threads of the platform's Milvus, like a machine that hangs, and
// returns when they have stopped. resume, or the end of the test, continues them.
func suspendMilvus(t *testing.T) (resume func()) {
	t.Helper()
	pid := milvusPID(t)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatalf("suspend Milvus: %v", err)
	}
	resume = sync.OnceFunc(func() {
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Errorf("resume Milvus: %v", err)
		}
	})
	t.Cleanup(resume)
	// A thread stops when it is scheduled, and may answer a request before.
	eventually(t, time.Minute, func() string {
		states, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if err != nil || len(states) == 0 {
			t.Fatalf("list the threads of Milvus: %v, %v", states, err)
		}
		for _, path := range states {
			stat, err := os.ReadFile(path)
			if err == nil && !strings.Contains(string(stat), ") T ") {
				return "a thread of Milvus is running: " + string(stat)
			}
		}
		return ""
	})
	return resume
}

// eventually polls until check returns "", and fails with its last result. Many checks start kubectl.
func eventually(t *testing.T, within time.Duration, check func() string) {
	t.Helper()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(within); ; <-tick.C {
		problem := check()
		if problem == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not in %s: %s", within, problem)
		}
	}
}

// milvusPID reads the process id from hack/devenv's record.
func milvusPID(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(platform.dir, "pids", "milvus.json"))
	if err != nil {
		t.Fatal(err)
	}
	var record struct{ PID int }
	if err := json.Unmarshal(data, &record); err != nil || record.PID == 0 {
		t.Fatalf("read Milvus' process id: %s: %v", data, err)
	}
	return record.PID
}
