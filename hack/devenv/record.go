package devenv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Record is the content of pids/<name>.json. A process id alone is not enough,
// because another program may have it after a crash: a process matches only if
// it also has the recorded start time and executable.
type Record struct {
	PID     int            `json:"pid"`
	Started string         `json:"started"` // field 22 of /proc/<pid>/stat, in clock ticks since boot
	Exe     string         `json:"exe"`
	Stop    syscall.Signal `json:"stop"`
}

// OrphanGrace is the grace period for stopping an orphaned process.
const OrphanGrace = 20 * time.Second

// RecordPath returns the path of the record of a process.
func RecordPath(dir, name string) string { return filepath.Join(dir, "pids", name+".json") }

// writeRecord records a process that has just been started.
func writeRecord(spec ProcessSpec, pid int) error {
	started, err := StartTime(pid)
	if err != nil {
		return fmt.Errorf("record %s: %w", spec.Name, err)
	}
	exe, err := filepath.EvalSymlinks(spec.Path)
	if err != nil {
		return fmt.Errorf("record %s: %w", spec.Name, err)
	}
	data, err := json.Marshal(Record{PID: pid, Started: started, Exe: exe, Stop: spec.Stop})
	if err != nil {
		return fmt.Errorf("record %s: %w", spec.Name, err)
	}
	path := RecordPath(spec.Dir, spec.Name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("record %s: %w", spec.Name, err)
	}
	if err := WriteFile(path, data, 0o644); err != nil {
		return fmt.Errorf("record %s: %w", spec.Name, err)
	}
	return nil
}

// Running reports whether the recorded process still runs.
func (r Record) Running() bool {
	started, err := StartTime(r.PID)
	if err != nil || started != r.Started {
		return false
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", r.PID))
	return err == nil && strings.TrimSuffix(exe, " (deleted)") == r.Exe
}

// ErrEnded is returned for a process that has ended.
var ErrEnded = errors.New("process has ended")

// StartTime returns the start time of a process in clock ticks since boot.
func StartTime(pid int) (string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return "", ErrEnded
	}
	if err != nil {
		return "", err
	}
	// The second field, the command in parentheses, may contain spaces. The state
	// (field 3) follows it.
	_, rest, ok := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 {
		return "", errors.New("unexpected format of /proc/<pid>/stat")
	}
	if fields[0] == "Z" {
		return "", ErrEnded
	}
	return fields[19], nil
}

// LoadRecord reads a record. A file without a valid record gives a zero Record.
func LoadRecord(path string) (Record, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Record{}, fmt.Errorf("read process record: %w", err)
	}
	var r Record
	_ = json.Unmarshal(data, &r) // r stays zero
	return r, nil
}

// stopRecorded stops the recorded process if it still runs, and removes the
// record.
func stopRecorded(ctx context.Context, path string, grace time.Duration) error {
	r, err := LoadRecord(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if r.PID > 1 {
		if err := r.stop(ctx, grace); err != nil {
			return fmt.Errorf("stop %s: %w", strings.TrimSuffix(filepath.Base(path), ".json"), err)
		}
	}
	// A program that shuts down gracefully removes its own record.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove process record: %w", err)
	}
	return nil
}

func (r Record) stop(ctx context.Context, grace time.Duration) error {
	kill := time.Now().Add(grace)
	for sig := r.Stop; r.Running(); {
		if time.Now().After(kill) {
			sig = syscall.SIGKILL
		}
		if sig != 0 {
			if err := syscall.Kill(r.PID, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("signal process %d (started by another user?): %w", r.PID, err)
			}
			sig = 0 // a second signal could turn a graceful stop into a forced one
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// StopAll stops every recorded process in dir that still runs, for example after
// a crash. It returns the names in all records it found.
func StopAll(ctx context.Context, dir string) ([]string, error) {
	paths, err := filepath.Glob(RecordPath(dir, "*"))
	if err != nil {
		return nil, fmt.Errorf("list process records: %w", err)
	}
	// The newest first: it may need the others for a graceful shutdown.
	slices.SortFunc(paths, func(a, b string) int { return recordedAt(b).Compare(recordedAt(a)) })
	var names []string
	var errs []error
	for _, path := range paths {
		names = append(names, strings.TrimSuffix(filepath.Base(path), ".json"))
		errs = append(errs, stopRecorded(ctx, path, OrphanGrace))
	}
	return names, errors.Join(errs...)
}

// recordedAt returns the time at which a process was recorded.
func recordedAt(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// RecordSelf records this program under a name, so that StopRecorded in another
// program can stop it. It returns the function that removes the record.
func RecordSelf(dir, name string) (remove func() error, err error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("record %s: %w", name, err)
	}
	spec := ProcessSpec{Name: name, Dir: dir, Path: exe, Stop: syscall.SIGINT}
	if err := writeRecord(spec, os.Getpid()); err != nil {
		return nil, err
	}
	return func() error { return os.Remove(RecordPath(dir, name)) }, nil
}

// StopRecorded stops the program of the given name if it runs in dir, and kills
// it after the grace period.
func StopRecorded(ctx context.Context, dir, name string, grace time.Duration) error {
	return stopRecorded(ctx, RecordPath(dir, name), grace)
}
