package metering_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/mnemo-dev/mnemo/internal/metering"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const acme, globex tenant.ID = "018f0000-0000-7000-8000-000000000001", "018f0000-0000-7000-8000-000000000002"

var monday = time.Date(2024, 5, 6, 23, 59, 59, 0, time.UTC)

// counts is a store like postgres.DB. It counts each journal once, and may fail.
type counts struct {
	failure  error
	reported map[uuid.UUID]bool
	total    map[metering.TenantDay]int64
}

func newCounts() *counts {
	return &counts{reported: map[uuid.UUID]bool{}, total: map[metering.TenantDay]int64{}}
}

func (c *counts) ReportRequests(_ context.Context, id uuid.UUID, requests map[metering.TenantDay]int64) error {
	if !c.reported[id] {
		for of, n := range requests {
			c.total[of] += n
		}
	}
	c.reported[id] = true
	return c.failure
}

func open(t *testing.T, dir string) *metering.Journal {
	t.Helper()
	j, err := metering.OpenJournal(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func add(t *testing.T, j *metering.Journal, id tenant.ID, at time.Time) {
	t.Helper()
	if err := j.Add(id, at); err != nil {
		t.Fatal(err)
	}
}

func report(t *testing.T, j *metering.Journal, c *counts) {
	t.Helper()
	if err := j.Report(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// Requests are counted by tenant and day, once, also if some are added while others are
// reported.
func TestJournalCounts(t *testing.T) {
	t.Parallel()
	j, c := open(t, t.TempDir()), newCounts()
	var adders sync.WaitGroup
	for range 4 {
		adders.Go(func() {
			for range 500 {
				add(t, j, acme, monday)
			}
		})
	}
	for range 20 {
		report(t, j, c)
	}
	adders.Wait()
	add(t, j, acme, monday.Add(time.Second))
	add(t, j, globex, monday)
	report(t, j, c)
	report(t, j, c)
	want := map[metering.TenantDay]int64{
		{Tenant: acme, Day: metering.DayOf(monday)}: 2000, {Tenant: globex, Day: metering.DayOf(monday)}: 1,
		{Tenant: acme, Day: metering.DayOf(monday.Add(time.Second))}: 1,
	}
	if diff := gocmp.Diff(want, c.total); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// The requests of a process that died are reported by another one that uses the directory,
// but not while the process lives.
func TestJournalAfterCrash(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newCounts()
	first, second := open(t, dir), open(t, dir)
	add(t, first, acme, monday)
	report(t, second, c)
	if len(c.total) != 0 {
		t.Errorf("the journal of a running process was reported: %v", c.total)
	}
	first.Crash()
	report(t, second, c)
	report(t, open(t, dir), c)
	if diff := gocmp.Diff(map[metering.TenantDay]int64{{Tenant: acme, Day: metering.DayOf(monday)}: 1}, c.total); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// A report whose outcome is unknown is repeated under the same id, and requests that are
// counted meanwhile are kept.
func TestJournalWhileStoreFails(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newCounts()
	j := open(t, dir)
	c.failure = errors.New("unavailable")
	for range 3 {
		add(t, j, acme, monday)
		if err := j.Report(t.Context(), c); !errors.Is(err, c.failure) {
			t.Fatalf("Report = %v, want %v", err, c.failure)
		}
	}
	c.failure = nil
	report(t, j, c)
	if n := c.total[metering.TenantDay{Tenant: acme, Day: metering.DayOf(monday)}]; n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) > 1 {
		t.Errorf("files after the report: %v, %v, want at most the current one", left, err)
	}
}

// An entry that was not completely written is no request.
func TestJournalWithTornEntry(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newCounts()
	if err := os.WriteFile(filepath.Join(dir, uuid.NewString()+".requests"), []byte("half an entry"), 0o600); err != nil {
		t.Fatal(err)
	}
	report(t, open(t, dir), c)
	if len(c.total) != 0 {
		t.Errorf("requests %v, want none", c.total)
	}
}

// A full disk may cut an entry off. It is no request, and later entries are counted as they are. The test is not
// parallel, because the limit that stands in for the disk applies to the process.
func TestJournalOnFullDisk(t *testing.T) {
	j, c := open(t, t.TempDir()), newCounts()
	add(t, j, acme, monday)
	full(t, 30, func() {
		for range 2 {
			if err := j.Add(globex, monday); err == nil {
				t.Error("a request was counted on a full disk")
			}
		}
	})
	add(t, j, globex, monday)
	add(t, j, acme, monday)
	full(t, 70, func() {
		if err := j.Add(globex, monday); err == nil {
			t.Error("a request was counted on a full disk")
		}
	})
	report(t, j, c)
	add(t, j, acme, monday)
	report(t, j, c)
	want := map[metering.TenantDay]int64{{Tenant: acme, Day: metering.DayOf(monday)}: 3, {Tenant: globex, Day: metering.DayOf(monday)}: 1}
	if diff := gocmp.Diff(want, c.total); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// full calls fn while no file can be larger than size.
func full(t *testing.T, size uint64, fn func()) {
	t.Helper()
	signal.Ignore(unix.SIGXFSZ)
	defer signal.Reset(unix.SIGXFSZ)
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	fn()
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
}

// An entry with a day in the future is damaged. It does not prevent the report of the others.
func TestJournalWithDamagedEntry(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newCounts()
	j := open(t, dir)
	add(t, j, acme, monday)
	j.Crash()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(names) != 1 {
		t.Fatalf("files: %v, %v", names, err)
	}
	entry, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	damaged := slices.Concat(bytes.Repeat([]byte{0xff}, len(entry)), entry)
	if err := os.WriteFile(names[0], damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	report(t, open(t, dir), c)
	if diff := gocmp.Diff(map[metering.TenantDay]int64{{Tenant: acme, Day: metering.DayOf(monday)}: 1}, c.total); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// Run reports once more when it ends, and leaves no files.
func TestJournalRun(t *testing.T) {
	for name, dir := range map[string]string{"with a directory": t.TempDir(), "without one": ""} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			j, c := open(t, dir), newCounts()
			ctx, stop := context.WithCancel(t.Context())
			add(t, j, acme, monday)
			stop()
			j.Run(ctx, c)
			if len(c.total) != 1 {
				t.Errorf("requests %v, want those of one tenant", c.total)
			}
			left, err := filepath.Glob(filepath.Join(cmp.Or(dir, os.TempDir()), "*"))
			if err != nil || len(left) > 0 {
				t.Errorf("files after the end: %v, %v", left, err)
			}
		})
	}
}

func BenchmarkAdd(b *testing.B) {
	j, err := metering.OpenJournal(b.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if err := j.Add(acme, monday); err != nil {
				b.Error(err)
			}
		}
	})
}
