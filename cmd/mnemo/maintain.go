package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/mnemo-dev/mnemo/apiserver"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

type migrateCommand struct {
	OwnerURL string        `name:"database-owner-url" env:"DATABASE_OWNER_URL" required:"" help:"PostgreSQL URL of the role that owns the database."`
	AppRole  string        `name:"database-app-role" env:"DATABASE_APP_ROLE" default:"mnemo_app" help:"Role that serve and operator connect as; it must exist."`
	Wait     time.Duration `name:"wait" env:"MNEMO_MIGRATE_WAIT" default:"0s" help:"Try again for this long, for a database and roles that are only being made."`
}

// Run brings the schema up to date.
func (c *migrateCommand) Run(ctx context.Context, log *slog.Logger) error {
	return patiently(ctx, log, c.Wait, func(ctx context.Context) error {
		version, err := postgres.Migrate(ctx, postgres.MigrateConfig{OwnerURL: c.OwnerURL, AppRole: c.AppRole})
		if err != nil {
			return err
		}
		log.InfoContext(ctx, "the schema is up to date", "version", version)
		return nil
	})
}

// indexFlags are what the commands that work on the index take.
type indexFlags struct {
	databaseFlags
	milvusFlags
	embedderFlags
}

// with calls work with an Indexer and the stores.
func (f indexFlags) with(ctx context.Context, work func(*retrieve.Indexer, *stores) error) error {
	g, err := f.generation()
	if err != nil {
		return err
	}
	embedder, err := f.embedderFlags.open()
	if err != nil {
		return err
	}
	s, err := openStores(ctx, f.databaseFlags, f.milvusFlags, g)
	if err != nil {
		return err
	}
	defer s.close()
	return work(retrieve.NewIndexer(s.db, s.index, embedder), s)
}

type reindexCommand struct {
	indexFlags
	Tenant tenant.ID `xor:"whose" required:"" help:"id of the tenant, as in its Tenant's status.id."`
	All    bool      `xor:"whose" required:"" help:"Every tenant, for example after a database was restored."`
}

// Run writes every live unit of the tenants to the vector store again.
func (c *reindexCommand) Run(ctx context.Context) error {
	return c.with(ctx, func(x *retrieve.Indexer, s *stores) error {
		ids := []tenant.ID{c.Tenant}
		if c.All {
			var err error
			if ids, err = s.db.ActiveTenants(ctx); err != nil {
				return err
			}
		}
		for _, id := range ids {
			if err := reindex(ctx, x, s, id); err != nil {
				return fmt.Errorf("tenant %s: %w", id, err)
			}
		}
		_, err := fmt.Printf("reindexed %d tenants\n", len(ids))
		return err
	})
}

// loadTimeout is how long Milvus may take to load what it has of a tenant.
const loadTimeout = 10 * time.Minute

func reindex(ctx context.Context, x *retrieve.Indexer, s *stores, id tenant.ID) error {
	place, err := s.db.Place(ctx, id)
	if err != nil {
		return err
	}
	load, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	if _, err := tenant.EnsurePlace(load, s.db, tenant.Waiting(s.index), tenant.Place{Placement: place}); err != nil {
		return err
	}
	return x.Rebuild(ctx, id)
}

type verifyCommand struct {
	indexFlags
	Tenant tenant.ID `required:"" help:"uid of the Tenant."`
}

// Run prints how far the vector store was from the database, and repairs it.
func (c *verifyCommand) Run(ctx context.Context) error {
	return c.with(ctx, func(x *retrieve.Indexer, _ *stores) error {
		drift, err := x.Sweep(ctx, c.Tenant)
		if err != nil {
			return err
		}
		_, err = fmt.Printf("missing %d, orphaned %d: repaired\n", drift.Missing, drift.Orphaned)
		return err
	})
}

type openapiCommand struct{}

// Run prints the HTTP contract.
func (openapiCommand) Run() error {
	document, err := apiserver.OpenAPI()
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(document)
	return err
}
