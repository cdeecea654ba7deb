package breaker_test

import (
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/breaker"
)

func TestBreaker(t *testing.T) {
	t.Parallel()
	var b breaker.Breaker
	now := time.Unix(0, 0)
	start := func(want bool, reason string) (c breaker.Call) {
		t.Helper()
		c, admitted := b.Start(now)
		if admitted != want {
			t.Errorf("%s: admitted %t, want %t", reason, admitted, want)
		}
		return c
	}
	done := func(c breaker.Call, o breaker.Outcome, want bool) {
		t.Helper()
		if changed := b.Done(now, c, o); changed != want {
			t.Errorf("changed %t, want %t", changed, want)
		}
	}
	early := start(true, "an available dependency")
	first := start(true, "any number of calls to it")
	done(first, breaker.Unknown, false)
	done(start(true, "the caller gave up, which says nothing"), breaker.Unavailable, true)
	start(false, "it did not respond")
	now = now.Add(breaker.FirstPause)
	probe := start(true, "a probe after the pause")
	start(false, "one probe at a time")
	done(early, breaker.Unavailable, false)
	now = now.Add(breaker.MaxPause - 1)
	start(false, "the probe still runs")
	done(probe, breaker.Unknown, false)
	done(start(true, "another probe, because the caller of the first one gave up"), breaker.Available, true)
	start(true, "it responds again")
	start(true, "any number of calls again")
}

// A probe can end without an outcome, for instance by a panic.
func TestProbeWithoutOutcomeIsReplaced(t *testing.T) {
	t.Parallel()
	var b breaker.Breaker
	now := time.Unix(0, 0)
	c, _ := b.Start(now)
	b.Done(now, c, breaker.Unavailable)
	now = now.Add(breaker.FirstPause)
	if c, admitted := b.Start(now); !admitted || !c.Probe {
		t.Fatalf("Start = %+v, %t, want a probe", c, admitted)
	}
	if _, admitted := b.Start(now.Add(breaker.MaxPause - 1)); admitted {
		t.Error("another call was admitted while the probe may still run")
	}
	if c, admitted := b.Start(now.Add(breaker.MaxPause)); !admitted || !c.Probe {
		t.Errorf("Start = %+v, %t, want another probe", c, admitted)
	}
}

func TestPausesDouble(t *testing.T) {
	t.Parallel()
	var b breaker.Breaker
	now := time.Unix(0, 0)
	c, _ := b.Start(now)
	for _, pause := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 4 * time.Second} {
		b.Done(now, c, breaker.Unavailable)
		if _, admitted := b.Start(now.Add(pause - 1)); admitted {
			t.Errorf("admitted before a pause of %s", pause)
		}
		now = now.Add(pause)
		var admitted bool
		if c, admitted = b.Start(now); !admitted {
			t.Errorf("rejected after a pause of %s", pause)
		}
	}
}
