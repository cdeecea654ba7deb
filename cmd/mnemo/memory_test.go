package main

import (
	"errors"
	"log/slog"
	"runtime/debug"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// The limit is that of the whole process, so the cases run one after another.
func TestMemoryLimit(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	unknown := func() (uint64, error) { return 0, errors.New("no such file") }
	for _, tc := range []struct {
		name, variable string
		container      memlimit.Provider
		want           float64
	}{
		{"container limit", "", memlimit.Limit(1 << 30), 858993459},
		{"unknown limit", "", unknown, 1 << 40},
		{"variable", "2GiB", memlimit.Limit(1 << 30), 1 << 40}, // the runtime reads it at the start of the process
	} {
		t.Run(tc.name, func(t *testing.T) {
			debug.SetMemoryLimit(1 << 40)
			if tc.variable != "" {
				t.Setenv("GOMEMLIMIT", tc.variable)
			}
			limitMemory(t.Context(), tc.container, serverMemoryRatio, slog.New(slog.DiscardHandler))
			if got := exported(t, "go_gc_gomemlimit_bytes"); got != tc.want {
				t.Errorf("go_gc_gomemlimit_bytes is %.0f, want %.0f", got, tc.want)
			}
		})
	}
}

// exported returns the value of a gauge that `mnemo serve` exports.
func exported(t *testing.T, name string) float64 {
	t.Helper()
	registry, _ := newMetrics()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("%s is not exported", name)
	return 0
}
