package erasure_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/erasure"
)

// writeEntries writes a ledger with n entries, one per hour, as a newer version might write them.
// It returns the lines of the entries.
func writeEntries(t *testing.T, dir string, n int) []string {
	t.Helper()
	lines := make([]string, n)
	for i := range lines {
		lines[i] = fmt.Sprintf(`{"n":%d,"id":"%d","at":%q,"kind":"memory","tenant":"t","reason":"new"}`+"\n",
			i+1, i+1, start.Add(time.Duration(i)*time.Hour).Format(time.RFC3339))
	}
	content := `{"ledger":"x","begun":"2026-05-01T09:00:00Z","after":0}` + "\n" + strings.Join(lines, "")
	if err := os.WriteFile(filepath.Join(dir, erasure.FileName), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return lines
}

func openLedger(t *testing.T, dir string) *erasure.Ledger {
	t.Helper()
	l, err := erasure.OpenLedger(dir, start)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestCompactCopiesKeptEntriesUnchanged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lines := writeEntries(t, dir, 5000)
	l := openLedger(t, dir)
	if n, err := l.Compact(start.Add(3 * time.Hour)); n != 3 || err != nil {
		t.Fatalf("Compact: %d, %v; want 3 removed", n, err)
	}
	if err := l.Append([]erasure.Entry{{ID: "next", At: start, Kind: erasure.Memory, Tenant: "t"}}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, erasure.FileName))
	if err != nil {
		t.Fatal(err)
	}
	want := append([]string{`{"ledger":"x","begun":"2026-05-01T09:00:00Z","after":3}` + "\n"}, lines[3:]...)
	want = append(want, `{"n":5001,"id":"next","at":"2026-05-01T09:00:00Z","kind":"memory","tenant":"t"}`+"\n")
	if diff := cmp.Diff(want, slices.Collect(strings.Lines(string(got)))); diff != "" {
		t.Errorf("ledger (-want +got):\n%.2000s", diff)
	}
	if n, err := l.Compact(start.Add(9000 * time.Hour)); n != 4998 || err != nil || l.Last() != 5001 {
		t.Errorf("Compact of all entries: %d, %v, last %d; want 4998 removed, last 5001", n, err, l.Last())
	}
}

// A loss is an entry of the ledger, and expires like others. Positions are not reused even if the clock is behind.
func TestCompactRemovesLoss(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeEntries(t, dir, 3)
	l := openLedger(t, dir)
	const known = 1 << 52
	for i := range int64(2) {
		if err := l.AppendLoss(start.Add(3*time.Hour), known); err != nil {
			t.Fatal(err)
		}
		if want := known + 1 + i; l.Last() != want {
			t.Errorf("position of a loss = %d, want %d", l.Last(), want)
		}
	}
	if err := l.Append([]erasure.Entry{{ID: "next", At: start.Add(4 * time.Hour), Kind: erasure.Memory, Tenant: "t"}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int64{1, 4, 0} {
		if n, err := l.Compact(start.Add(time.Duration(want) * time.Hour)); n != want || err != nil {
			t.Errorf("Compact: %d, %v; want %d removed", n, err, want)
		}
	}
	if want := int64(known + 3); l.Last() != want {
		t.Errorf("last position after Compact = %d, want %d", l.Last(), want)
	}
}

// TestCompactReadsOnlyExpiredEntries is not parallel, because it counts allocations: the memory
// of the recorder must not grow with the ledger.
func TestCompactReadsOnlyExpiredEntries(t *testing.T) {
	var allocations []float64
	for _, entries := range []int{10, 5000} {
		dir := t.TempDir()
		writeEntries(t, dir, entries)
		l, path := openLedger(t, dir), filepath.Join(dir, erasure.FileName)
		before, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		allocations = append(allocations, testing.AllocsPerRun(5, func() {
			if n, err := l.Compact(start); n != 0 || err != nil {
				t.Errorf("Compact: %d, %v; want nothing removed", n, err)
			}
		}))
		after, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if !os.SameFile(before, after) {
			t.Errorf("the ledger was rewritten although no entry expired")
		}
	}
	if allocations[0] != allocations[1] {
		t.Errorf("Compact allocates %.0f times with 10 entries and %.0f times with 5,000, want the same", allocations[0], allocations[1])
	}
}
