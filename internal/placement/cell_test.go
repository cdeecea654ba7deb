package placement_test

import (
	"errors"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/placement"
)

// cellsOf returns three cells of region eu, one of them cordoned, and one of us.
func cellsOf(change func(a, b *placement.Cell)) []placement.Cell {
	cells := []placement.Cell{
		{Name: "eu-a", Region: "eu", Capacity: placement.CellUsage{Tenants: 10}, Usage: placement.CellUsage{Tenants: 5}},
		{Name: "eu-b", Region: "eu", Capacity: placement.CellUsage{Tenants: 100}, Usage: placement.CellUsage{Tenants: 20}},
		{Name: "eu-c", Region: "eu", Cordoned: true},
		{Name: "us-a", Region: "us"},
	}
	if change != nil {
		change(&cells[0], &cells[1])
	}
	return cells
}

func TestSelectCell(t *testing.T) {
	t.Parallel()
	for reason, tc := range map[string]struct {
		want   placement.Preference
		change func(a, b *placement.Cell)
		cell   string
		err    error
	}{
		"the largest free share of the region": {want: placement.Preference{Region: "eu"}, cell: "eu-b"},
		"units limit the capacity, too": {want: placement.Preference{Region: "eu"}, cell: "eu-a", change: func(_, b *placement.Cell) {
			b.Capacity.Units, b.Usage.Units = 10, 9
		}},
		"fewer tenants, without limits": {want: placement.Preference{Region: "eu"}, cell: "eu-a", change: func(a, b *placement.Cell) {
			a.Capacity.Tenants, b.Capacity.Tenants = 0, 0
		}},
		"a region that is full": {want: placement.Preference{Region: "eu"}, err: placement.ErrCellFull, change: func(a, b *placement.Cell) {
			a.Usage.Tenants, b.Usage.Tenants = 10, 101
		}},
		"an unknown region": {want: placement.Preference{Region: "asia"}, err: placement.ErrCellNotFound},
		"a cell":            {want: placement.Preference{Cell: "eu-a"}, cell: "eu-a"},
		"a cell that is full": {want: placement.Preference{Cell: "eu-a"}, err: placement.ErrCellFull, change: func(a, _ *placement.Cell) {
			a.Usage.Tenants = 10
		}},
		"a cordoned cell": {want: placement.Preference{Cell: "eu-c"}, err: placement.ErrCellFull},
		"an unknown cell": {want: placement.Preference{Cell: "eu-z"}, err: placement.ErrCellNotFound},
	} {
		got, err := tc.want.Select(cellsOf(tc.change))
		if got != tc.cell || !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) {
			t.Errorf("%s: Select = %q, %v, want %q, %v", reason, got, err, tc.cell, tc.err)
		}
	}
}

func TestStayInCell(t *testing.T) {
	t.Parallel()
	in := func(cell string) placement.Placement {
		return placement.Placement{Location: placement.Location{Cell: cell, Collection: "c", Partition: "p_" + cell}, PartitionID: 1}
	}
	for reason, tc := range map[string]struct {
		want  placement.Preference
		state placement.State
		cell  string
		stays bool
	}{
		"no request":                         {state: placement.State{Current: in("eu-a")}, stays: true},
		"in the requested cell":              {want: placement.Preference{Cell: "eu-a"}, state: placement.State{Current: in("eu-a")}, cell: "eu-a", stays: true},
		"in the requested cell, cordoned":    {want: placement.Preference{Cell: "eu-c"}, state: placement.State{Current: in("eu-c")}, cell: "eu-c", stays: true},
		"in the requested region":            {want: placement.Preference{Region: "eu"}, state: placement.State{Current: in("eu-a")}, cell: "eu-a", stays: true},
		"in a cordoned cell of the region":   {want: placement.Preference{Region: "eu"}, state: placement.State{Current: in("eu-c")}},
		"in another region":                  {want: placement.Preference{Region: "us"}, state: placement.State{Current: in("eu-a")}},
		"moving to the region":               {want: placement.Preference{Region: "us"}, state: placement.State{Current: in("eu-a"), Migration: placement.Migration{Target: in("us-a")}}, cell: "us-a", stays: true},
		"in the default cell":                {want: placement.Preference{Region: "eu"}, state: placement.State{Current: in("")}},
		"in no index, which is in no cell":   {want: placement.Preference{Region: "eu"}, state: placement.State{Current: placement.Placement{Location: placement.Location{Partition: "p"}}}},
		"in a cell that was deleted by hand": {want: placement.Preference{Cell: "gone"}, state: placement.State{Current: in("gone")}},
	} {
		if got, ok := tc.want.Stay(cellsOf(nil), tc.state); got != tc.cell || ok != tc.stays {
			t.Errorf("%s: Stay = %q, %t, want %q, %t", reason, got, ok, tc.cell, tc.stays)
		}
	}
}
