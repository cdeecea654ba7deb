package retrieve

import (
	"os"
	"strings"
	"testing"
)

// statements reads pairs of an older and a newer text.
func statements(t *testing.T, file string) (updates, distinct [][2]string) {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) != 3 {
			t.Fatalf("%s: %d columns in %q, want 3", file, len(f), line)
		}
		if pair := [2]string{f[1], f[2]}; f[0] == "update" {
			updates = append(updates, pair)
		} else {
			distinct = append(distinct, pair)
		}
	}
	return updates, distinct
}

// The rule was chosen on the first file and not changed after the second was measured.
func TestSupersedesPrecision(t *testing.T) {
	t.Parallel()
	for file, least := range map[string]struct{ recall, precision float64 }{
		"statements.tsv": {0.9, 0.95}, "statements-held-out.tsv": {0.8, 0.9},
	} {
		updates, distinct := statements(t, file)
		found, wrong := 0.0, 0.0
		for _, p := range updates {
			if supersedes(p[0], p[1]) {
				found++
			} else {
				t.Logf("missed: %s → %s", p[0], p[1])
			}
		}
		for _, p := range distinct {
			for _, q := range [][2]string{p, {p[1], p[0]}} {
				if supersedes(q[0], q[1]) {
					wrong++
					t.Logf("wrong: %s → %s", q[0], q[1])
				}
			}
		}
		recall, precision := found/float64(len(updates)), found/(found+wrong)
		t.Logf("%s: recall %.2f of %d updates, precision %.2f, %.0f of %d distinct pairs superseded", file, recall, len(updates), precision, wrong, 2*len(distinct))
		if recall < least.recall || precision < least.precision {
			t.Errorf("%s: recall %.2f and precision %.2f, want at least %v", file, recall, precision, least)
		}
	}
}

// Numbers that name the subject make statements distinct, those that say something of it
// make them updates.
func TestSupersedesNumbered(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		older, newer string
		want         bool
	}{
		{"Client 2, memory 7 of 100: the parcel weighs 3 kg", "Client 2, memory 8 of 100: the parcel weighs 5 kg", false},
		{"Client 2, memory 7 of 100: the parcel weighs 3 kg", "Client 3, memory 7 of 100: the parcel weighs 5 kg", false},
		{"Client 2, memory 7 of 100: the parcel weighs 3 kg", "Client 2, memory 7 of 100: the parcel weighs 5 kg", true},
		{"The parcel weighs 3 kg", "The parcel weighs 5 kg", true},
	} {
		if got := supersedes(tc.older, tc.newer); got != tc.want {
			t.Errorf("%q, then %q: %t, want %t", tc.older, tc.newer, got, tc.want)
		}
	}
}

func supersedes(older, newer string) bool {
	return ParseStatement(newer).Supersedes(ParseStatement(older), 1)
}
