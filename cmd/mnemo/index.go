package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// indexCommand groups the commands that maintain the vector index.
type indexCommand struct {
	Repair  repairCommand  `cmd:"" help:"Compare the vector index with the database and repair the differences."`
	Rebuild rebuildCommand `cmd:"" help:"Rebuild the vector index from the embeddings in the database."`
}

// indexFlags select tenants and connect to the stores.
type indexFlags struct {
	databaseFlags
	milvusFlags
	embedderFlags
	nextEmbedderFlags

	Tenant string `xor:"tenants" required:"" help:"Tenant: namespace/name, or its UID or ID."`
	All    bool   `xor:"tenants" required:"" help:"All active tenants."`
}

// forEach calls fn with every selected tenant and returns their number. It stops
// at the first error.
func (f indexFlags) forEach(ctx context.Context, log *slog.Logger, fn func(*indexing.Indexer, *stores, tenant.ID) error) (int, error) {
	g, err := f.generation()
	if err != nil {
		return 0, err
	}
	s, err := openStores(ctx, f.databaseFlags, f.milvusFlags, g, log)
	if err != nil {
		return 0, err
	}
	defer s.close()
	embedders, err := openEmbedders(ctx, s, nil, f.embedderFlags, f.next(f.embedderFlags))
	if err != nil {
		return 0, err
	}
	ids, err := f.selected(ctx, s)
	if err != nil {
		return 0, err
	}
	indexer := indexing.NewIndexer(s.db, s.index, embedders, log)
	for _, id := range ids {
		if err := fn(indexer, s, id); err != nil {
			return 0, fmt.Errorf("tenant %s: %w", id, err)
		}
	}
	return len(ids), nil
}

// selected returns the selected tenants.
func (f indexFlags) selected(ctx context.Context, s *stores) ([]tenant.ID, error) {
	if f.All {
		return s.db.ActiveTenants(ctx)
	}
	records, err := s.db.Records(ctx, tenant.RecordsOf{})
	if err != nil {
		return nil, err
	}
	found, err := findTenant(records, f.Tenant)
	return []tenant.ID{found.ID}, err
}

type rebuildCommand struct{ indexFlags }

// Run writes every live unit of the tenants to the vector index.
func (c *rebuildCommand) Run(ctx context.Context, log *slog.Logger) error {
	n, err := c.forEach(ctx, log, func(x *indexing.Indexer, s *stores, id tenant.ID) error {
		if err := rebuild(ctx, x, s, id); err != nil {
			return err
		}
		return s.db.RecordCommand(ctx, id, audit.IndexRebuild)
	})
	if err != nil {
		return err
	}
	_, err = fmt.Printf("rebuilt the index of %d tenants\n", n)
	return err
}

// loadTimeout bounds how long Milvus may take to load a tenant's partition.
const loadTimeout = 10 * time.Minute

func rebuild(ctx context.Context, x *indexing.Indexer, s *stores, id tenant.ID) error {
	if _, err := s.db.EnsurePlacement(ctx, id); err != nil {
		return err
	}
	state, err := s.db.GetPlacement(ctx, id)
	if err != nil {
		return err
	}
	target := placement.Placement{Location: state.Current.Location, Dimensions: state.Current.Dimensions}
	load, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	if _, err := placement.EnsurePartition(load, s.db, placement.WaitLoaded(s.index), target); err != nil {
		return err
	}
	return x.Rebuild(ctx, id)
}

type repairCommand struct {
	indexFlags
	DryRun bool `help:"Report the differences without repairing them."`
}

// Run prints the differences between the vector index and the database, and
// repairs them unless this is a dry run.
func (c *repairCommand) Run(ctx context.Context, log *slog.Logger) error {
	_, err := c.forEach(ctx, log, func(x *indexing.Indexer, s *stores, id tenant.ID) error {
		check, verb := x.Sweep, "repaired"
		if c.DryRun {
			check, verb = x.Compare, "not repaired (dry run)"
		}
		drift, err := check(ctx, id)
		if err != nil {
			return err
		}
		if drift == (indexing.Drift{}) {
			verb = "nothing to repair"
		} else if !c.DryRun {
			if err := s.db.RecordCommand(ctx, id, audit.IndexRepair); err != nil {
				return err
			}
		}
		_, err = fmt.Printf("tenant %s: %d missing, %d orphaned: %s\n", id, drift.Missing, drift.Orphaned, verb)
		return err
	})
	return err
}
