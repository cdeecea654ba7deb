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
			t.Fatalf("after %d failures it waits %s, after one less %s", failures, wait, last)
		}
		last = wait
	}
	if last != maxRetry {
		t.Errorf("it waits %s at the longest, want %s", last, maxRetry)
	}
}

func TestPutOff(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		metadata string
		want     int
	}{
		"never":        {`{}`, 0},
		"no metadata":  {``, 0},
		"three times":  {`{"snoozes": 3}`, 3},
		"not a number": {`{"snoozes": "x"}`, 0},
	} {
		if got := putOff(&rivertype.JobRow{Metadata: []byte(tc.metadata)}); got != tc.want {
			t.Errorf("%s: put off %d times, want %d", name, got, tc.want)
		}
	}
}
