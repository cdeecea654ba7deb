package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExecuteReturnsExitCode(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		command []string
		want    int
		wantErr bool
	}{
		"success":            {command: []string{"true"}, want: 0},
		"exit code":          {command: []string{"sh", "-c", "exit 7"}, want: 7},
		"killed by a signal": {command: []string{"sh", "-c", "kill -9 $$"}, want: 1},
		"environment":        {command: []string{"sh", "-c", `test "$MNEMO_TEST_X" = there`}, want: 0},
		"no such command":    {command: []string{"no-such-command"}, want: 1, wantErr: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, err := execute(t.Context(), tt.command, []string{"MNEMO_TEST_X=there"})
			if code != tt.want || (err != nil) != tt.wantErr {
				t.Errorf("execute: %d, %v, want %d and an error: %t", code, err, tt.want, tt.wantErr)
			}
		})
	}
}

func TestExecuteStopsCommandOnCancel(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	ready := filepath.Join(t.TempDir(), "fifo")
	done := make(chan int)
	go func() {
		code, _ := execute(ctx, []string{"sh", "-c", `trap "exit 5" TERM; mkfifo "$0"; echo > "$0"; while :; do sleep 0.05; done`, ready}, nil)
		done <- code
	}()
	for { // the command creates the pipe after setting its trap
		if _, err := os.ReadFile(ready); err == nil {
			break
		}
	}
	cancel()
	if code := <-done; code == 0 {
		t.Error("exit code 0 for a canceled command")
	}
}

func TestStartRejectsUnknownDependency(t *testing.T) {
	t.Parallel()
	err := new(started).start(t.Context(), t.TempDir(), nil, config{names: []string{"oracle"}})
	if err == nil || !strings.Contains(err.Error(), "choose from postgres,milvus,kube,model,chromium") {
		t.Errorf("start: %v, want the list of dependencies", err)
	}
}

func TestCleanKeepsLogsOfFailedRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, sub := range []string{"logs", "milvus"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := clean(dir, false); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 1 || files[0].Name() != "logs" {
		t.Errorf("files after a failed run: %v, want only logs", files)
	}
	if err := clean(dir, true); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("directory after a successful run: %v, want that it does not exist", err)
	}
}
