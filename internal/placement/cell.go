package placement

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Cell is a vector store that contains the vectors of a part of the tenants. The default cell,
// to which every process is connected by its flags, is no Cell: its name is empty.
type Cell struct {
	Name   string
	Region string
	// Cordoned keeps tenants from being placed in the cell. Those that request a region
	// move to another cell of it.
	Cordoned bool
	Capacity CellUsage // 0 for no limit
	Usage    CellUsage // of tenants that are placed in the cell or move there
}

// CellUsage counts what a cell contains, or may contain.
type CellUsage struct {
	Tenants int64
	Units   int64 // counted once an hour
}

// Connection is how to connect to the vector store of a cell.
type Connection struct {
	Address  string `json:"address"` // host:port, or https://host:port for TLS
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	CA       string `json:"ca,omitempty"` // PEM; the system's CAs if empty
}

// ConnectionSuffix is the end of the name of the file with the Connection of a cell, as JSON.
const ConnectionSuffix = ".json"

// Preference is where a tenant requests to be placed: in a cell, or in any cell of a region.
// The zero value requests the default cell.
type Preference struct{ Cell, Region string }

// Why a tenant cannot be placed as it requests.
var (
	ErrCellNotFound = errors.New("no such cell")
	ErrCellFull     = errors.New("no capacity")
)

// ErrNotConnected means that the connection to a cell has not reached this process.
var ErrNotConnected = errors.New("not connected")

// Refusal says why no cell accepts a tenant.
type Refusal struct {
	Reason  error // ErrCellNotFound or ErrCellFull
	Message string
}

// Error returns the message.
func (r *Refusal) Error() string { return r.Message }

// Unwrap returns the reason.
func (r *Refusal) Unwrap() error { return r.Reason }

func newRefusal(reason error, format string, args ...any) error {
	return &Refusal{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// CellStore stores cells. internal/postgres implements it.
type CellStore interface {
	// ApplyCell creates or updates a cell. Usage is ignored.
	ApplyCell(ctx context.Context, c Cell) error
	// UpdateCell updates a cell. It does nothing if the cell does not exist. Usage is ignored.
	UpdateCell(ctx context.Context, c Cell) error
	// CellUsage returns the usage of a cell, and the number of locations in it that tenants
	// left and that are not dropped yet.
	CellUsage(ctx context.Context, name string) (usage CellUsage, leaving int64, err error)
	// DeleteCell deletes a cell; Conflict if something is placed in it.
	DeleteCell(ctx context.Context, name string) error
}

// Stay returns the cell in which the tenant stays, or to which it is moving already, if that
// is one it requests. It requires no usage.
func (p Preference) Stay(cells []Cell, s State) (name string, ok bool) {
	if p == (Preference{}) {
		return "", true
	}
	for _, at := range []Placement{s.Current, s.Migration.Target} {
		i := slices.IndexFunc(cells, func(c Cell) bool { return c.Name == at.Cell })
		if !at.Indexed() || i < 0 {
			continue
		}
		if p.Cell == at.Cell || p.Cell == "" && cells[i].Region == p.Region && !cells[i].Cordoned {
			return at.Cell, true
		}
	}
	return "", false
}

// Select returns the cell for a tenant that is in none of those it requests: of a region, the
// one with the largest free share of its capacity. A Refusal if none accepts it.
func (p Preference) Select(cells []Cell) (name string, err error) {
	if p.Cell != "" {
		return p.check(cells)
	}
	var best *Cell
	found := false
	for i := range cells {
		c := &cells[i]
		if c.Region != p.Region {
			continue
		}
		found = true
		if !c.Cordoned && c.free() > 0 && (best == nil || c.before(best)) {
			best = c
		}
	}
	switch {
	case !found:
		return "", newRefusal(ErrCellNotFound, "region %q has no cell; set spec.placement to the region of a Cell", p.Region)
	case best == nil:
		return "", newRefusal(ErrCellFull, "every cell of region %q is full or cordoned; ask the platform administrator to add a cell", p.Region)
	}
	return best.Name, nil
}

// check returns the requested cell if it accepts tenants.
func (p Preference) check(cells []Cell) (string, error) {
	i := slices.IndexFunc(cells, func(c Cell) bool { return c.Name == p.Cell })
	switch {
	case i < 0:
		return "", newRefusal(ErrCellNotFound, "cell %q does not exist or was never ready; set spec.placement.cell to the name of a ready Cell", p.Cell)
	case cells[i].Cordoned:
		return "", newRefusal(ErrCellFull, "cell %q is cordoned; choose another cell", p.Cell)
	case cells[i].free() <= 0:
		return "", newRefusal(ErrCellFull, "cell %q is full; choose another cell, or ask the platform administrator to raise its capacity", p.Cell)
	}
	return p.Cell, nil
}

// free returns the free share of the capacity, 1 if the cell is empty or has no limit.
func (c *Cell) free() float64 {
	share := func(used, limit int64) float64 {
		if limit == 0 {
			return 1
		}
		return 1 - float64(used)/float64(limit)
	}
	return min(share(c.Usage.Tenants, c.Capacity.Tenants), share(c.Usage.Units, c.Capacity.Units))
}

// before reports whether a tenant is placed in c rather than in the other cell.
func (c *Cell) before(other *Cell) bool {
	if a, b := c.free(), other.free(); a != b {
		return a > b
	}
	if c.Usage.Tenants != other.Usage.Tenants {
		return c.Usage.Tenants < other.Usage.Tenants
	}
	return c.Name < other.Name
}
