package devenv

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain runs the parent process of TestProcessesEndWithParent if the variable
// is set.
func TestMain(m *testing.M) {
	if dir := os.Getenv("DEVENV_TEST_PARENT"); dir != "" {
		p, err := StartProcess(context.Background(), sleeper(dir))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(p.cmd.Process.Pid)
		<-p.done
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// sleeper is a process that does nothing for a long time.
func sleeper(dir string) ProcessSpec {
	return ProcessSpec{Name: "sleeper", Dir: dir, Path: "/bin/sleep", Args: []string{"1000"}, Stop: syscall.SIGTERM}
}

// shell is a process that runs a script.
func shell(dir, script string) ProcessSpec {
	return ProcessSpec{Name: "shell", Dir: dir, Path: "/bin/sh", Args: []string{"-c", script}, Stop: syscall.SIGTERM}
}

func start(t *testing.T, spec ProcessSpec) *Process {
	t.Helper()
	p, err := StartProcess(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() })
	return p
}

func TestStopEndsProcess(t *testing.T) {
	t.Parallel()
	p := start(t, sleeper(t.TempDir()))
	if group, err := syscall.Getpgid(p.cmd.Process.Pid); err != nil || group != p.cmd.Process.Pid {
		t.Errorf("process group %d (%v), want its own, which Ctrl-C does not reach", group, err)
	}
	if err := p.StopWithin(time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(RecordPath(p.spec.Dir, "sleeper")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("record after stop: %v, want none", err)
	}
}

func TestStopKillsAfterGrace(t *testing.T) {
	t.Parallel()
	p := start(t, shell(t.TempDir(), `trap "" TERM; echo ready; while :; do sleep 0.05; done`))
	err := p.Await(t.Context(), time.Minute, func(context.Context) error {
		if !strings.Contains(lastLines(p.logPath(), 1), "ready") {
			return errors.New("not ready")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.StopWithin(100 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if status, _ := p.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
		t.Errorf("ended by %v, want SIGKILL", status.Signal())
	}
}

func TestAwaitShowsLogOfProcessThatEnded(t *testing.T) {
	t.Parallel()
	p := start(t, shell(t.TempDir(), "echo the disk is on fire; exit 3"))
	err := p.Await(t.Context(), time.Minute, func(context.Context) error { return errors.New("no answer") })
	for _, want := range []string{"exit status 3", "the disk is on fire", p.logPath()} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("await error %v, want it to contain %q", err, want)
		}
	}
}

func TestStartStopsOrphan(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := start(t, sleeper(dir))
	second := start(t, sleeper(dir))
	<-first.done
	if !running(second.cmd.Process.Pid) {
		t.Error("the second process is not running")
	}
}

func TestStopAll(t *testing.T) {
	t.Parallel()
	ours, theirs := start(t, sleeper(t.TempDir())), start(t, sleeper(t.TempDir()))
	dir := ours.spec.Dir
	// Records of processes whose id another program now has.
	r := readRecord(t, theirs)
	r.Started += "0"
	saveRecord(t, RecordPath(dir, "reused"), r)
	r = readRecord(t, theirs)
	r.Exe = "/bin/other"
	saveRecord(t, RecordPath(dir, "other"), r)

	names, err := StopAll(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != 3 {
		t.Errorf("stopped %v, want 3 names", names)
	}
	<-ours.done
	if !running(theirs.cmd.Process.Pid) {
		t.Error("StopAll stopped a process that it did not start")
	}
	if names, err := StopAll(t.Context(), dir); err != nil || len(names) != 0 {
		t.Errorf("second StopAll: %v, %v, want no records", names, err)
	}
}

func TestProcessesEndWithParent(t *testing.T) {
	t.Parallel()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), "DEVENV_TEST_PARENT="+t.TempDir())
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("output of the parent %q, want a process id", line)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for running(pid) {
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			t.Fatalf("process %d still runs after its parent was killed", pid)
		}
	}
}

func running(pid int) bool {
	_, err := StartTime(pid)
	return err == nil
}

func readRecord(t *testing.T, p *Process) Record {
	t.Helper()
	data, err := os.ReadFile(RecordPath(p.spec.Dir, p.spec.Name))
	if err != nil {
		t.Fatal(err)
	}
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func saveRecord(t *testing.T, path string, r Record) {
	t.Helper()
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
