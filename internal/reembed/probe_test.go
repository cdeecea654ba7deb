package reembed

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pairs returns n probes of which the source and the target find the given numbers.
func pairs(n, source, target int) (c comparison) {
	for i := range n {
		var p [2]float64
		if i < source {
			p[0] = 1
		}
		if i < target {
			p[1] = 1
		}
		c.pairs = append(c.pairs, p)
	}
	return c
}

func TestWorse(t *testing.T) {
	t.Parallel()
	for reason, tc := range map[string]struct {
		n, source, target int
		want              bool
	}{
		"nothing to compare":           {0, 0, 0, false},
		"too few probes":               {minProbes - 1, minProbes - 1, 0, false},
		"as good":                      {100, 95, 95, false},
		"better":                       {100, 60, 95, false},
		"a little less":                {400, 390, 370, false},
		"random vectors":               {100, 95, 10, true},
		"half of the texts":            {40, 38, 20, true},
		"a loss that chance explains":  {30, 15, 11, false},
		"a loss beyond the tolerance":  {400, 390, 330, true},
		"everything, in few questions": {minProbes, minProbes, 0, true},
	} {
		if got := pairs(tc.n, tc.source, tc.target).scores(); got.Worse() != tc.want {
			t.Errorf("%s: Worse of %+v = %t, want %t", reason, got, got.Worse(), tc.want)
		}
	}
}

func TestQuestions(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("abcdefghi ", 100)
	p := Pool{
		{Owner: "a", Text: "one two three four five six seven eight"},
		{Owner: "b", Seq: 3, Text: "too short", Before: "What is the name of it?"},
		{Owner: "c", Seq: 1, Text: long, Before: "Hm."},
	}
	want := []string{"0: five six seven eight", "1: What is the name of it?", fmt.Sprintf("2: %s", strings.TrimSpace(long[:300]))}
	var got []string
	for _, q := range p.questions() {
		got = append(got, fmt.Sprintf("%d: %s", q.unit, q.text))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("questions (-want +got):\n%s", diff)
	}
}
