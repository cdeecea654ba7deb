package chat

import (
	"testing"

	"pgregory.net/rapid"
)

func TestFlagsApply(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		flags        Flags
		before, want Status
	}{
		"no fields":             {Flags{}, Excluded, Excluded},
		"pinned":                {Flags{Pinned: new(true)}, Active, Active},
		"exclude active":        {Flags{Excluded: new(true)}, Active, Excluded},
		"exclude blocked":       {Flags{Excluded: new(true)}, Blocked, Excluded},
		"exclude excluded":      {Flags{Excluded: new(true)}, Excluded, Excluded},
		"include excluded":      {Flags{Excluded: new(false)}, Excluded, Blocked},
		"include active again":  {Flags{Excluded: new(false)}, Active, Active},
		"include blocked again": {Flags{Excluded: new(false)}, Blocked, Blocked},
	} {
		if got := tc.flags.Apply(tc.before); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestRebalance(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		active, quota int64
		want          int
	}{
		"at the quota":          {5, 5, 0},
		"below the quota":       {3, 5, 2},
		"above the quota":       {7, 5, -2},
		"far below the quota":   {0, 1 << 40, 10},
		"far above the quota":   {1 << 40, 0, -10},
		"no quota, none active": {0, 0, 0},
	} {
		if got := Rebalance(tc.active, tc.quota, 10); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

// Counting moves gives the same numbers as counting the conversations at the end.
func TestStatusCountsProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var got, want StatusCounts
		states := map[int]Status{}
		for range rapid.IntRange(0, 30).Draw(t, "moves") {
			id := rapid.IntRange(0, 4).Draw(t, "id")
			to := rapid.SampledFrom([]Status{"", Active, Excluded, Blocked}).Draw(t, "to")
			got.Move(states[id], to)
			states[id] = to
		}
		for _, s := range states {
			want.add(s, 1)
		}
		if got != want {
			t.Fatalf("counts are %+v, want %+v", got, want)
		}
	})
}
