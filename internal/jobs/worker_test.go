package jobs

import (
	"testing"
	"time"

	"github.com/riverqueue/river/rivertype"
)

func TestBackoffIsBounded(t *testing.T) {
	t.Parallel()
	last := time.Duration(0)
	for failures := range 100 {
		wait := backoff(failures)
		if wait < last || wait < time.Second || wait > maxRetry {
			t.Fatalf("backoff after %d failures is %s, after one fewer %s", failures, wait, last)
		}
		last = wait
	}
	if last != maxRetry {
		t.Errorf("maximum backoff is %s, want %s", last, maxRetry)
	}
}

func TestSnoozes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		metadata string
		want     int
	}{
		"never":          {`{}`, 0},
		"no metadata":    {``, 0},
		"three attempts": {`{"snoozes": 3}`, 3},
		"not a number":   {`{"snoozes": "x"}`, 0},
	} {
		if got := snoozes(&rivertype.JobRow{Metadata: []byte(tc.metadata)}); got != tc.want {
			t.Errorf("%s: %d snoozes, want %d", name, got, tc.want)
		}
	}
}
