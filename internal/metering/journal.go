package metering

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// entrySize is the size of an entry: the id of the tenant and the day since 1970.
	entrySize = 20
	// suffix is that of the files' names.
	suffix = ".requests"
	// reportEvery is the interval at which journals are reported. It bounds what the loss
	// of a node can lose.
	reportEvery = 5 * time.Second
	// clockError is how far the clock of the server may be ahead of that of the disk.
	clockError = 24 * time.Hour
	// stopTimeout bounds the last report.
	stopTimeout = 5 * time.Second
)

// RequestStore adds the requests of journals to the usage. postgres.DB implements it.
type RequestStore interface {
	// ReportRequests adds the requests of a journal, unless it was reported before.
	ReportRequests(ctx context.Context, journal uuid.UUID, requests map[TenantDay]int64) error
}

// TenantDay is a day of a tenant.
type TenantDay struct {
	Tenant tenant.ID
	Day    Day
}

// Journal counts requests in files of a directory. An entry is written before the request is
// answered, with one system call and without waiting for the disk: it survives the process,
// but not the node. A file is reported once and then deleted; files of processes that have
// died are reported by the next one that uses the directory.
type Journal struct {
	dir string
	log *slog.Logger

	mu   sync.Mutex
	file *os.File   // locked, so that other processes know that it is in use
	size int64      // of the whole entries in it
	full []*os.File // replaced files, still locked, that wait for their report
}

// OpenJournal creates the directory if necessary. It must belong to one database. Without
// one, the files do not survive the process.
func OpenJournal(dir string, log *slog.Logger) (*Journal, error) {
	if dir != "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("create the directory of request journals: %w", err)
		}
	}
	j := &Journal{dir: dir, log: log}
	var err error
	j.file, err = j.create()
	return j, err
}

// create creates a file and locks it.
func (j *Journal) create() (*os.File, error) {
	for {
		f, err := os.OpenFile(filepath.Join(cmp.Or(j.dir, os.TempDir()), uuid.NewString()+suffix), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("create request journal: %w", err)
		}
		if j.dir == "" {
			return f, os.Remove(f.Name())
		}
		// Another process may have taken it for a file without an owner.
		if lock(f) && exists(f) {
			return f, nil
		}
		_ = f.Close() // it is empty
	}
}

// lock locks a file unless a process or another open file has locked it.
func lock(f *os.File) bool {
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}

// exists reports whether an open file was not deleted.
func exists(f *os.File) bool {
	var stat unix.Stat_t
	return unix.Fstat(int(f.Fd()), &stat) == nil && stat.Nlink > 0
}

// Add counts a request of a tenant.
func (j *Journal) Add(t tenant.ID, at time.Time) error {
	id, err := uuid.Parse(string(t))
	if err != nil {
		return fmt.Errorf("count request: %w", err)
	}
	entry := binary.LittleEndian.AppendUint32(id[:], uint32(at.Unix()/86400)) //nolint:gosec // until the year 11 million
	j.mu.Lock()
	defer j.mu.Unlock()
	// If a full disk cuts an entry off, the next one overwrites it.
	if _, err := j.file.WriteAt(entry, j.size); err != nil {
		return fmt.Errorf("count request: %w", err)
	}
	j.size += entrySize
	return nil
}

// Run reports the journals of the directory until the context ends, and then once more.
func (j *Journal) Run(ctx context.Context, s RequestStore) {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	failing := false
	for {
		err := j.Report(ctx, s)
		if err != nil && !failing && ctx.Err() == nil {
			j.log.WarnContext(ctx, "counted requests are waiting to be stored", "error", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			j.finish(ctx, s)
			return
		case <-tick.C:
		}
	}
}

// finish reports once more, although the context has ended.
func (j *Journal) finish(ctx context.Context, s RequestStore) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := j.Report(ctx, s); err != nil {
		j.log.WarnContext(ctx, "counted requests are waiting for the next server that uses the directory", "directory", j.dir, "error", err)
	}
	j.close()
}

// close deletes the current file if it is empty. Requests are not counted any more.
func (j *Journal) close() {
	if stat, err := j.file.Stat(); err == nil && stat.Size() == 0 {
		_ = os.Remove(j.file.Name()) // it contains nothing
	}
	_ = j.file.Close()
}

// Report adds the requests of all files to the usage: those that this journal has written,
// and those whose process has died.
func (j *Journal) Report(ctx context.Context, s RequestStore) error {
	if err := j.replace(); err != nil {
		return err
	}
	failures := []error{j.adopt()}
	waiting := j.full
	j.full = nil
	for _, f := range waiting {
		if err := report(ctx, s, f); err != nil {
			failures = append(failures, err)
			j.full = append(j.full, f)
			continue
		}
		_ = os.Remove(f.Name()) // if it stays, the store knows that it was reported
		_ = f.Close()
	}
	return errors.Join(failures...)
}

// replace begins a new file unless the current one is empty.
func (j *Journal) replace() error {
	if stat, err := j.file.Stat(); err == nil && stat.Size() == 0 {
		return nil
	}
	next, err := j.create()
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.full, j.file, j.size = append(j.full, j.file), next, 0
	return nil
}

// adopt locks the files whose process has died.
func (j *Journal) adopt() error {
	if j.dir == "" {
		return nil
	}
	names, err := filepath.Glob(filepath.Join(j.dir, "*"+suffix))
	if err != nil {
		return fmt.Errorf("list request journals: %w", err)
	}
	for _, name := range names {
		f, err := os.Open(name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("open request journal: %w", err)
		}
		if !lock(f) || !exists(f) {
			_ = f.Close()
			continue
		}
		j.full = append(j.full, f)
	}
	return nil
}

// report reports a file.
func report(ctx context.Context, s RequestStore, f *os.File) error {
	id, err := uuid.Parse(strings.TrimSuffix(filepath.Base(f.Name()), suffix))
	if err != nil {
		return fmt.Errorf("report requests: file %s is not a journal", f.Name())
	}
	entries, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<40))
	if err != nil {
		return fmt.Errorf("report requests: %w", err)
	}
	stat, err := f.Stat()
	if err != nil {
		return fmt.Errorf("report requests: %w", err)
	}
	// A damaged entry may have a day that the store rejects, with all others of the file.
	latest := stat.ModTime().Add(clockError)
	requests := map[TenantDay]int64{}
	for ; len(entries) >= entrySize; entries = entries[entrySize:] {
		at := time.Unix(int64(binary.LittleEndian.Uint32(entries[16:]))*86400, 0)
		if at.After(latest) {
			continue
		}
		day := DayOf(at)
		requests[TenantDay{tenant.ID(uuid.UUID(entries[:16]).String()), day}]++
	}
	if len(requests) == 0 {
		return nil
	}
	if err := s.ReportRequests(ctx, id, requests); err != nil {
		return fmt.Errorf("report requests: %w", err)
	}
	return nil
}
