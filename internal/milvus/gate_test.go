package milvus

import (
	"testing"
	"time"
)

func TestGate(t *testing.T) {
	t.Parallel()
	var g gate
	now := time.Unix(0, 0)
	enter := func(want bool, reason string) {
		t.Helper()
		if admitted, _ := g.enter(now); admitted != want {
			t.Errorf("%s: admitted %t, want %t", reason, admitted, want)
		}
	}
	enter(true, "a store that responds")
	enter(true, "any number of calls to it")
	g.leave(now, false, unknown)
	enter(true, "the caller gave up, which says nothing")
	g.leave(now, false, dead)
	enter(false, "it did not respond")
	now = now.Add(probePause)
	enter(true, "a probe after the pause")
	enter(false, "one probe at a time")
	g.leave(now, false, dead) // a call from before
	now = now.Add(probePause)
	enter(false, "the probe still runs")
	g.leave(now, true, unknown)
	enter(true, "another probe, because the caller of the first one gave up")
	g.leave(now, true, alive)
	enter(true, "it responds again")
	enter(true, "any number of calls again")
}
