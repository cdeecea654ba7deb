package milvus

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/mnemo-dev/mnemo/internal/breaker"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// closeDelay is how long calls on a replaced connection may take.
const closeDelay = 2 * time.Minute

// Backend is a vector store to which Router passes calls.
type Backend interface {
	retrieve.Index
	indexing.Store
	placement.Partitions
	// ListUser is Index.ListUser.
	ListUser(ctx context.Context, scope tenant.Scope, p placement.Location, after retrieve.UnitID, limit int) ([]retrieve.UnitID, error)
	Close() error
}

var (
	_ Backend = (*Index)(nil)
	_ Backend = (*Router)(nil)
)

// Router is the vector index of an installation with cells: it passes each call to the
// vector store of the location's cell. It connects on first use. While a cell does not
// respond, calls to it fail at once, except for one at a time, so that jobs of its tenants
// do not occupy the workers.
type Router struct {
	home       Backend
	dimensions int
	log        *slog.Logger
	now        func() time.Time

	mu    sync.Mutex
	cells map[string]*cell // by name; "" is the default one
}

// cell is a vector store of a Router.
type cell struct {
	breaker    breaker.Breaker
	connection placement.Connection
	index      Backend // nil before the first use
}

// NewRouter returns a Router with a default cell. dimensions is Config.Dimensions of the
// other cells, which Load adds.
func NewRouter(home Backend, dimensions int, log *slog.Logger) *Router {
	return &Router{home: home, dimensions: dimensions, log: log, now: time.Now, cells: map[string]*cell{"": {index: home}}}
}

// Home returns the vector store of the default cell.
func (r *Router) Home() Backend { return r.home }

// find returns a connected cell, and whether it is the only one.
func (r *Router) find(name string) (c *cell, alone bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c = r.cells[name]; c == nil {
		return nil, false, notConnected(name)
	}
	return c, len(r.cells) == 1, r.open(name, c)
}

// open connects to a cell on first use. r.mu must be locked.
func (r *Router) open(name string, c *cell) error {
	if c.index != nil {
		return nil
	}
	config, err := configOf(c.connection)
	if err != nil {
		return err
	}
	config.Dimensions = r.dimensions
	// The connection outlives the call that needs it first.
	index, err := Open(context.Background(), config)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "connect to cell %s", name)
	}
	c.index = index
	return nil
}

func notConnected(name string) error {
	return fault.Wrap(fault.Unavailable, placement.ErrNotConnected, "the connection to cell %s has not reached this process", name)
}

// call calls fn with the vector store of a cell, unless the cell does not respond.
func (r *Router) call(ctx context.Context, name string, fn func(Backend) error) error {
	c, alone, err := r.find(name)
	switch {
	case err != nil:
		return err
	case alone: // there are no other tenants to protect
		return fn(c.index)
	}
	call, admitted := c.breaker.Start(r.now())
	if !admitted {
		return notResponding(name)
	}
	err = fn(c.index)
	c.breaker.Done(r.now(), call, responded(ctx, err))
	return err
}

// administer is call for functions that may last for a minute. They do not probe a cell, because all
// its other calls would fail meanwhile: a short call does.
func (r *Router) administer(ctx context.Context, name string, fn func(Backend) error) error {
	c, alone, err := r.find(name)
	switch {
	case err != nil:
		return err
	case alone:
		return fn(c.index)
	}
	call, admitted := c.breaker.Start(r.now())
	if !admitted {
		return notResponding(name)
	}
	if call.Probe {
		if err := c.ping(ctx); err != nil {
			c.breaker.Done(r.now(), call, responded(ctx, err))
			return err
		}
		c.breaker.Done(r.now(), call, breaker.Unknown) // other calls than a ping may still fail
		call = breaker.Call{}
	}
	err = fn(c.index)
	c.breaker.Done(r.now(), call, responded(ctx, err))
	return err
}

func notResponding(name string) error {
	return fault.New(fault.Unavailable, "the vector store of %s does not respond", describe(name))
}

func describe(name string) string {
	if name == "" {
		return "the default cell"
	}
	return "cell " + name
}

// responded returns what a result says about the store: that it responded, that it did
// not, or nothing.
func responded(ctx context.Context, err error) breaker.Outcome {
	_, status := errors.AsType[*statusError](err)
	switch {
	case err == nil || status || !fault.Is(err, fault.Unavailable) || errors.Is(err, placement.ErrLoading):
		return breaker.Available
	case ctx.Err() != nil: // the caller gave up
		return breaker.Unknown
	}
	return breaker.Unavailable
}

// Ping returns an error if a cell cannot be reached with the connection, and ErrNotConnected
// if this process has loaded another one or none.
func (r *Router) Ping(ctx context.Context, name string, connection placement.Connection) error {
	c, err := r.findConnection(name, connection)
	if err != nil {
		return err
	}
	return c.ping(ctx)
}

// findConnection returns a connected cell, if its connection is the one that is loaded.
func (r *Router) findConnection(name string, connection placement.Connection) (*cell, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.cells[name]
	if c == nil || c.connection != connection {
		return nil, notConnected(name)
	}
	return c, r.open(name, c)
}

func (c *cell) ping(ctx context.Context) error {
	if x, ok := c.index.(*Index); ok {
		return x.Ping(ctx)
	}
	return nil
}

// Search implements retrieve.Index.
func (r *Router) Search(ctx context.Context, scope tenant.Scope, p placement.Location, request retrieve.Request, vector []float32) (hits []retrieve.Hit, err error) {
	err = r.call(ctx, p.Cell, func(x Backend) error {
		hits, err = x.Search(ctx, scope, p, request, vector)
		return err
	})
	return hits, err
}

// Upsert implements indexing.Store.
func (r *Router) Upsert(ctx context.Context, t tenant.ID, p placement.Location, entries []indexing.Entry) error {
	return r.call(ctx, p.Cell, func(x Backend) error { return x.Upsert(ctx, t, p, entries) })
}

// Delete implements indexing.Store.
func (r *Router) Delete(ctx context.Context, t tenant.ID, p placement.Location, ids []retrieve.UnitID) error {
	return r.call(ctx, p.Cell, func(x Backend) error { return x.Delete(ctx, t, p, ids) })
}

// List implements indexing.Store.
func (r *Router) List(ctx context.Context, t tenant.ID, p placement.Location, after retrieve.UnitID, limit int) (ids []retrieve.UnitID, err error) {
	err = r.call(ctx, p.Cell, func(x Backend) error {
		ids, err = x.List(ctx, t, p, after, limit)
		return err
	})
	return ids, err
}

// ListUser implements Backend.
func (r *Router) ListUser(ctx context.Context, scope tenant.Scope, p placement.Location, after retrieve.UnitID, limit int) (ids []retrieve.UnitID, err error) {
	err = r.call(ctx, p.Cell, func(x Backend) error {
		ids, err = x.ListUser(ctx, scope, p, after, limit)
		return err
	})
	return ids, err
}

// Ensure implements placement.Partitions.
func (r *Router) Ensure(ctx context.Context, p placement.Placement) (partitionID int64, err error) {
	err = r.administer(ctx, p.Cell, func(x Backend) error {
		partitionID, err = x.Ensure(ctx, p)
		return err
	})
	return partitionID, err
}

// Drop implements indexing.Store and placement.Partitions.
func (r *Router) Drop(ctx context.Context, p placement.Location) error {
	return r.administer(ctx, p.Cell, func(x Backend) error { return x.Drop(ctx, p) })
}

// Close ends all connections.
func (r *Router) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, c := range r.cells {
		if c.index != nil {
			errs = append(errs, c.index.Close())
		}
	}
	return errors.Join(errs...)
}
