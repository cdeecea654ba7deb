package erasure_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/mnemo-dev/mnemo/internal/erasure"
	"github.com/mnemo-dev/mnemo/internal/fault"
)

// fakeStore is a database. A copy of it is a backup.
type fakeStore struct {
	state    erasure.State
	pending  []erasure.Entry
	repeated []string // memories
	begun    int
	asked    int   // most ids of one call of Known
	fail     error // of Acknowledge
}

var _ erasure.Store = (*fakeStore)(nil)

func (s *fakeStore) State(context.Context) (erasure.State, error) { return s.state, nil }

func (s *fakeStore) Pending(_ context.Context, limit int) ([]erasure.Entry, error) {
	return slices.Clone(s.pending[:min(limit, len(s.pending))]), nil
}

func (s *fakeStore) Known(_ context.Context, ids []string) ([]string, error) {
	s.asked = max(s.asked, len(ids))
	var out []string
	for _, e := range s.pending {
		if slices.Contains(ids, e.ID) {
			out = append(out, e.ID)
		}
	}
	return out, nil
}

func (s *fakeStore) remove(ids []string) {
	s.pending = slices.DeleteFunc(slices.Clone(s.pending), func(e erasure.Entry) bool { return slices.Contains(ids, e.ID) })
}

func (s *fakeStore) Acknowledge(_ context.Context, ledger string, from, to int64, ids []string) error {
	switch {
	case s.fail != nil:
		return s.fail
	case s.state.Ledger != ledger || s.state.Position != from:
		return fault.New(fault.Unavailable, "restored")
	}
	s.state.Position = to
	s.remove(ids)
	return nil
}

func (s *fakeStore) BeginReplay(context.Context) error {
	s.begun++
	s.state.Current = false
	return nil
}

func (s *fakeStore) Replay(_ context.Context, e erasure.Entry) error {
	if s.state.Current {
		return errors.New("the database is served during the replay")
	}
	s.repeated = append(s.repeated, e.Objects...)
	return nil
}

func (s *fakeStore) Attach(_ context.Context, ledger string, position int64, ids []string) error {
	s.state = erasure.State{Ledger: ledger, Position: position, Current: true}
	s.remove(ids)
	return nil
}

// erase records the deletion of memories.
func (s *fakeStore) erase(ids ...string) {
	for _, id := range ids {
		s.pending = append(s.pending, erasure.Entry{ID: uuid.NewString(), At: start, Kind: erasure.Memory, Tenant: "t", User: 1, Objects: []string{id}})
	}
}

// restored returns a backup of the database as it is after pg_restore.
func (s *fakeStore) restored() *fakeStore {
	out := *s
	out.pending, out.state.Current = slices.Clone(s.pending), false
	return &out
}

var start = time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)

func open(t *testing.T, c erasure.Config) *erasure.Recorder {
	t.Helper()
	c.Log = slog.New(slog.DiscardHandler)
	if c.Now == nil {
		c.Now = func() time.Time { return start }
	}
	r, err := erasure.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// attach attaches a database with a new recorder and returns the repeated
// memories.
func attach(t *testing.T, dir string, s *fakeStore) []string {
	t.Helper()
	r := open(t, erasure.Config{Store: s, Dir: dir})
	defer r.Close()
	if _, err := r.Attach(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !s.state.Current {
		t.Error("the database is not served after Attach")
	}
	return s.repeated
}

func record(t *testing.T, dir string, s *fakeStore) {
	t.Helper()
	r := open(t, erasure.Config{Store: s, Dir: dir})
	defer r.Close()
	if _, err := r.Record(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestRestoredDatabaseRepeatsWhatItLacks(t *testing.T) {
	t.Parallel()
	dir, s := t.TempDir(), &fakeStore{}
	attach(t, dir, s)
	s.erase("before")
	record(t, dir, s)
	s.erase("pending") // erased in the backup, recorded after it
	backup := s.restored()
	s.erase("after-1", "after-2")
	record(t, dir, s)
	if len(s.pending) != 0 {
		t.Fatalf("%d erasures are pending after Record", len(s.pending))
	}

	if diff := cmp.Diff([]string{"after-1", "after-2"}, attach(t, dir, backup)); diff != "" {
		t.Errorf("repeated (-want +got):\n%s", diff)
	}
	if len(backup.pending) != 0 {
		t.Errorf("%d erasures of the backup are still pending; the ledger contains them", len(backup.pending))
	}
	attach(t, dir, backup)
	if backup.begun != 1 {
		t.Errorf("%d replays, want 1: the second Attach has nothing to repeat", backup.begun)
	}
	backup.erase("later")
	record(t, dir, backup)
	if diff := cmp.Diff([]string{"after-1", "after-2", "later"}, attach(t, dir, s.restoredAt(2))); diff != "" {
		t.Errorf("repeated in the same backup restored later (-want +got):\n%s", diff)
	}
}

// TestManyErasuresAreRepeatedInBatches: the memory that a restore needs does not depend on the size of the ledger.
func TestManyErasuresAreRepeatedInBatches(t *testing.T) {
	t.Parallel()
	dir, s := t.TempDir(), &fakeStore{}
	attach(t, dir, s)
	s.erase("pending")
	backup := s.restored()
	var want []string
	for i := range 2500 {
		want = append(want, fmt.Sprint(i))
	}
	s.erase(want...)
	for len(s.pending) > 0 {
		record(t, dir, s)
	}
	if diff := cmp.Diff(want, attach(t, dir, backup)); diff != "" {
		t.Errorf("repeated (-want +got):\n%s", diff)
	}
	if backup.begun != 1 || backup.asked > 1000 || len(backup.pending) > 0 {
		t.Errorf("%d replays, %d entries at once, %d pending erasures; want 1, at most 1000 and 0", backup.begun, backup.asked, len(backup.pending))
	}
}

// restoredAt returns an empty backup that reflects the ledger up to a position.
func (s *fakeStore) restoredAt(position int64) *fakeStore {
	return &fakeStore{state: erasure.State{Ledger: s.state.Ledger, Position: position}}
}

func TestCrashBetweenLedgerAndDatabase(t *testing.T) {
	t.Parallel()
	dir, s := t.TempDir(), &fakeStore{}
	attach(t, dir, s)
	s.erase("one")
	s.fail = fault.New(fault.Unavailable, "gone")
	r := open(t, erasure.Config{Store: s, Dir: dir})
	if _, err := r.Record(t.Context()); err == nil {
		t.Fatal("no error of Acknowledge")
	}
	_ = r.Close()
	s.fail = nil
	if repeated := attach(t, dir, s); len(repeated) > 0 {
		t.Errorf("repeated %q in a database that was not restored", repeated)
	}
	if s.begun != 0 {
		t.Error("the database was closed although it was not restored")
	}
	if s.state.Position != 1 {
		t.Errorf("position %d, want 1: the entry is in the ledger", s.state.Position)
	}
}

func TestSnapshotIsNoticedByItsPosition(t *testing.T) {
	t.Parallel()
	dir, s := t.TempDir(), &fakeStore{}
	attach(t, dir, s)
	snapshot := *s
	s.erase("one")
	record(t, dir, s)
	if diff := cmp.Diff([]string{"one"}, attach(t, dir, &snapshot)); diff != "" {
		t.Errorf("repeated (-want +got):\n%s", diff)
	}
}

func TestIncompleteLedgerIsRejected(t *testing.T) {
	t.Parallel()
	dir, s := t.TempDir(), &fakeStore{}
	attach(t, dir, s)
	s.erase("one", "two")
	record(t, dir, s)
	compacted := copyLedger(t, dir)
	l, err := erasure.OpenLedger(compacted, start)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := l.Compact(start.Add(time.Hour)); n != 2 || err != nil {
		t.Fatalf("Compact: %d, %v", n, err)
	}
	if err := l.Append([]erasure.Entry{{ID: uuid.NewString(), At: start, Kind: erasure.Memory, Tenant: "t", User: 1, Objects: []string{"three"}}}); err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	for name, tc := range map[string]struct {
		reason, dir, want string
		position          int64
		repeated          []string // after the loss was accepted
	}{
		"Other":     {reason: "the ledger of another database knows nothing", dir: t.TempDir(), want: "made with erasure ledger"},
		"Old":       {reason: "a copy of the ledger lacks the latest entries", dir: dir, want: "the ledger is an old copy", position: 3},
		"Compacted": {reason: "the backup is older than the kept entries", dir: compacted, want: "were removed from the ledger", repeated: []string{"three"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := s.restoredAt(tc.position)
			r := open(t, erasure.Config{Store: db, Dir: tc.dir})
			if _, err := r.Attach(t.Context()); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want Invalid with %q", tc.reason, err, tc.want)
			}
			if err := r.Run(t.Context()); !fault.Is(err, fault.Invalid) {
				t.Errorf("%s: Run: %v, want Invalid", tc.reason, err)
			}
			if db.state.Current {
				t.Errorf("%s: the database is served", tc.reason)
			}
			r.AcceptLoss = true
			if _, err := r.Attach(t.Context()); err != nil || !db.state.Current {
				t.Errorf("%s: accepted: %v, served %t", tc.reason, err, db.state.Current)
			}
			if diff := cmp.Diff(tc.repeated, db.repeated); diff != "" {
				t.Errorf("%s: repeated (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// copyLedger returns the directory of a copy.
func copyLedger(t *testing.T, dir string) string {
	t.Helper()
	out := t.TempDir()
	raw, err := os.ReadFile(filepath.Join(dir, erasure.FileName))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(out, erasure.FileName), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

// accept attaches a database with --accept-loss at a time, and returns the repeated memories.
func accept(t *testing.T, dir string, s *fakeStore, now time.Time) []string {
	t.Helper()
	r := open(t, erasure.Config{Store: s, Dir: dir, AcceptLoss: true, Now: func() time.Time { return now }})
	defer r.Close()
	if _, err := r.Attach(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s.repeated
}

// wantLoss checks that a restored database is refused without --accept-loss, and what is repeated with it.
func wantLoss(t *testing.T, reason, dir string, s *fakeStore, want ...string) {
	t.Helper()
	if _, err := open(t, erasure.Config{Store: s, Dir: copyLedger(t, dir)}).Attach(t.Context()); !fault.Is(err, fault.Invalid) {
		t.Errorf("%s: %v, want Invalid", reason, err)
	}
	if diff := cmp.Diff(want, accept(t, copyLedger(t, dir), s, start.Add(24*time.Hour))); diff != "" {
		t.Errorf("%s: repeated (-want +got):\n%s", reason, diff)
	}
}

// TestAcceptedLossKeepsLaterErasures: an old copy of a ledger gives no number of a lost entry to another one. A backup made
// with the lost entries would otherwise seem to reflect the new ones.
func TestAcceptedLossKeepsLaterErasures(t *testing.T) {
	t.Parallel()
	dir, s := t.TempDir(), &fakeStore{}
	attach(t, dir, s)
	s.erase("known")
	record(t, dir, s)
	before, old, again := s.restored(), copyLedger(t, dir), copyLedger(t, dir)
	s.erase("lost-1", "lost-2")
	record(t, dir, s)
	first, second, backup := s.restored(), s.restored(), s.restored()

	if repeated := accept(t, old, first, start); len(repeated) > 0 {
		t.Errorf("repeated %q, want nothing: the backup reflects the copy", repeated)
	}
	first.erase("new-1", "new-2", "new-3")
	record(t, old, first)
	if repeated := attach(t, old, first.restored()); len(repeated) > 0 {
		t.Errorf("repeated %q in a backup with all entries, want nothing", repeated)
	}
	wantLoss(t, "a backup made with the lost entries", old, backup, "new-1", "new-2", "new-3")
	wantLoss(t, "a backup from before the lost entries", old, before, "new-1", "new-2", "new-3")

	accept(t, again, second, start.Add(time.Hour))
	second.erase("other-1", "other-2", "other-3", "other-4")
	record(t, again, second)
	wantLoss(t, "a backup made after another loss of the same entries", again, first.restored(), "other-1", "other-2", "other-3", "other-4")
}

// TestReturnToAnEarlierLedger: a database that used another ledger meanwhile continues the earlier one, which lacks the
// entries of the other.
func TestReturnToAnEarlierLedger(t *testing.T) {
	t.Parallel()
	dir, other, s := t.TempDir(), t.TempDir(), &fakeStore{}
	attach(t, dir, s)
	s.erase("one")
	record(t, dir, s)
	backup, accepted, old := s.restored(), s.restored(), copyLedger(t, dir)
	s.erase("lost")
	record(t, dir, s)
	lost := s.restored()
	attach(t, other, s)
	s.erase("elsewhere")
	record(t, other, s)
	fromOther := s.restored()

	attach(t, dir, s)
	s.erase("new")
	record(t, dir, s)
	if repeated := attach(t, dir, s.restored()); len(repeated) > 0 {
		t.Errorf("repeated %q in a backup with all entries, want nothing", repeated)
	}
	wantLoss(t, "a backup from before the other ledger", dir, backup, "lost", "new")

	if diff := cmp.Diff([]string{"one"}, accept(t, old, fromOther, start)); diff != "" {
		t.Errorf("repeated in a backup of the other ledger (-want +got):\n%s", diff)
	}
	fromOther.erase("new")
	record(t, old, fromOther)
	wantLoss(t, "a backup made with lost entries", old, lost, "new")
	wantLoss(t, "a backup from before the lost entries", old, accepted, "new")
}

// A snapshot keeps the identity of the database, so only its position shows that it was restored. The entries that
// the ledger still has are repeated in it.
func TestCompactedLedgerIsAppliedToSnapshot(t *testing.T) {
	t.Parallel()
	dir, s := t.TempDir(), &fakeStore{}
	attach(t, dir, s)
	snapshot := *s
	s.erase("one", "two")
	record(t, dir, s)
	l, err := erasure.OpenLedger(dir, start)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := l.Compact(start.Add(time.Hour)); n != 2 || err != nil {
		t.Fatalf("Compact: %d, %v", n, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s.erase("three")
	record(t, dir, s)
	if _, err := open(t, erasure.Config{Store: &snapshot, Dir: dir, AcceptLoss: true}).Attach(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"three"}, snapshot.repeated); diff != "" {
		t.Errorf("repeated (-want +got):\n%s", diff)
	}
}

// TestStoppedLedgerIsNotContinued: an entry before the stop must not be repeated in
// data that was stored since.
func TestStoppedLedgerIsNotContinued(t *testing.T) {
	t.Parallel()
	dir, s := t.TempDir(), &fakeStore{}
	attach(t, dir, s)
	s.erase("one")
	record(t, dir, s)
	s.state = erasure.State{Current: true}

	r := open(t, erasure.Config{Store: s, Dir: dir, AcceptLoss: true})
	if _, err := r.Attach(t.Context()); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "cannot be continued") {
		t.Errorf("the same ledger: %v, want Invalid with %q", err, "cannot be continued")
	}
	if repeated := attach(t, t.TempDir(), s); len(repeated) > 0 {
		t.Errorf("repeated %q with an empty ledger", repeated)
	}
}

func TestTornLineIsRemoved(t *testing.T) {
	t.Parallel()
	dir, s := t.TempDir(), &fakeStore{}
	attach(t, dir, s)
	s.erase("one")
	record(t, dir, s)
	path := filepath.Join(dir, erasure.FileName)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"n":2,"id":"`); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	s.erase("two")
	record(t, dir, s)
	if diff := cmp.Diff([]string{"one", "two"}, attach(t, dir, s.restoredAt(0))); diff != "" {
		t.Errorf("repeated (-want +got):\n%s", diff)
	}
}

func TestLedgerIsUsedByOneProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open(t, erasure.Config{Store: &fakeStore{}, Dir: dir})
	if _, err := erasure.OpenLedger(dir, start); !fault.Is(err, fault.Conflict) {
		t.Errorf("second process: %v, want Conflict", err)
	}
}

func TestDamagedLedgerIsRejected(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"Empty": "", "NoHeader": "{}\n", "Gap": `{"ledger":"x"}` + "\n" + `{"n":2}` + "\n", "Garbage": `{"ledger":"x"}` + "\n???\n",
		"LossBackwards": `{"ledger":"x","after":5}` + "\n" + `{"n":5,"kind":"loss"}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, erasure.FileName), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := erasure.OpenLedger(dir, start); !fault.Is(err, fault.Invalid) {
				t.Errorf("open: %v, want Invalid", err)
			}
		})
	}
}
