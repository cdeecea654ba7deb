package retrieve

import (
	"os"
	"strings"
	"testing"
)

// Near-duplicates are found, and neither updates nor distinct statements are taken for them.
func TestNearDuplicatePrecision(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/duplicates.tsv")
	if err != nil {
		t.Fatal(err)
	}
	found, total, wrong, others := 0, 0, 0, 0
	for line := range strings.Lines(string(raw)) {
		a, b, _ := strings.Cut(strings.TrimSpace(line), "\t")
		total++
		if supersedes(a, b) || supersedes(b, a) {
			t.Errorf("%s = %s: one supersedes the other", a, b)
		}
		if nearDuplicate(a, b) && nearDuplicate(b, a) {
			found++
		} else {
			t.Logf("missed: %s = %s", a, b)
		}
	}
	for _, file := range []string{"statements.tsv", "statements-held-out.tsv"} {
		updates, distinct := statements(t, file)
		for _, p := range append(updates, distinct...) {
			others++
			if nearDuplicate(p[0], p[1]) {
				wrong++
				t.Logf("wrong: %s = %s", p[0], p[1])
			}
		}
	}
	t.Logf("%d of %d near-duplicates found, %d of %d other pairs taken for near-duplicates", found, total, wrong, others)
	if found < total*3/4 || wrong > 2 {
		t.Errorf("%d of %d found, %d wrong", found, total, wrong)
	}
}

func nearDuplicate(a, b string) bool { return ParseStatement(a).NearDuplicate(ParseStatement(b)) }
