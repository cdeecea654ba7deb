package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/reembed"
)

// embeddingsCommand groups the commands that replace the embedding model.
type embeddingsCommand struct {
	Status   embeddingsStatusCommand   `cmd:"" help:"Show the models of the stored vectors and the migration to another model."`
	Migrate  embeddingsMigrateCommand  `cmd:"" help:"Migrate all tenants to the next model (docs/models.md)."`
	Rollback embeddingsRollbackCommand `cmd:"" help:"Roll the migration back: all users are served with the previous model."`
}

type embeddingsMigrateCommand struct {
	databaseFlags
	embedderFlags
	nextEmbedderFlags
	CanaryPercent int           `default:"10" help:"Percentage of users that are served with the next model during the canary."`
	CanaryFor     time.Duration `default:"1h" help:"Duration of the canary; 0 to skip it."`
	Rate          int           `default:"100" help:"Texts embedded per second; 0 for no limit."`
	Force         bool          `help:"Complete the migration even if the next model's recall is lower."`
}

// Validate reports invalid flags.
func (c *embeddingsMigrateCommand) Validate() error {
	switch {
	case c.CanaryPercent < 0 || c.CanaryPercent > 100:
		return errors.New("--canary-percent must be between 0 and 100")
	case c.CanaryFor < 0:
		return errors.New("--canary-for must not be negative")
	case c.Rate < 0:
		return errors.New("--rate must not be negative")
	}
	return nil
}

// Run starts the migration, which the API servers then work on.
func (c *embeddingsMigrateCommand) Run(ctx context.Context) error {
	next := c.next(c.embedderFlags)
	if next.Embedder == "none" {
		return errors.New("no next model is configured: set embeddings.next in the chart, or MNEMO_NEXT_EMBEDDER, for every API server first (docs/models.md)")
	}
	g, err := next.generation()
	if err != nil {
		return err
	}
	db, err := c.databaseFlags.open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	id, err := db.EnsureGeneration(ctx, g, false)
	if err != nil {
		return err
	}
	used, err := db.UsedGenerations(ctx)
	if err != nil {
		return err
	}
	if len(used) == 1 && used[0].ID == id {
		return fault.New(fault.Conflict, "all vectors already use model %s", g.Model)
	}
	err = db.StartEmbeddingMigration(ctx, id, reembed.Options{
		CanaryPercent: c.CanaryPercent, CanaryFor: c.CanaryFor, Rate: c.Rate, Force: c.Force,
	})
	if err != nil {
		return err
	}
	_, err = fmt.Printf("migrating to model %s; follow it with mnemo embeddings status\n", g.Model)
	return err
}

type embeddingsStatusCommand struct{ databaseFlags }

// Run prints the models in use and the latest migration.
func (c *embeddingsStatusCommand) Run(ctx context.Context) error {
	db, err := c.databaseFlags.open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	used, err := db.UsedGenerations(ctx)
	if err != nil {
		return err
	}
	if err := printGenerations(os.Stdout, used); err != nil {
		return err
	}
	m, err := db.LatestEmbeddingMigration(ctx)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return printMigration(os.Stdout, m)
}

func printGenerations(to io.Writer, used []placement.UsedGeneration) error {
	w := tabwriter.NewWriter(to, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "MODEL\tREVISION\tDIMENSIONS\tTENANTS")
	for _, g := range used {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\n", g.Model, g.Revision[:min(len(g.Revision), 12)], g.Dimensions, g.Tenants)
	}
	return w.Flush()
}

func printMigration(to io.Writer, m reembed.Migration) error {
	w := tabwriter.NewWriter(to, 0, 0, 3, ' ', 0)
	fmt.Fprintf(w, "\nMigration to\t%s\n", m.Model)
	fmt.Fprintf(w, "Phase\t%s, for %s\n", m.Phase, m.PhaseAge.Round(time.Second))
	if m.Reason != "" {
		fmt.Fprintf(w, "Reason\t%s\n", m.Reason)
	}
	fmt.Fprintf(w, "Tenants\t%d to copy, %d copied, %d migrated\n", m.Pending, m.Ready, m.Migrated)
	fmt.Fprintf(w, "Canary\t%d %% of the users for %s\n", m.CanaryPercent, m.CanaryFor)
	if m.Scores.Probes > 0 {
		fmt.Fprintf(w, "Probe recall\t%.0f %% of %d texts (previous model: %.0f %%)\n", 100*m.Scores.Target, m.Scores.Probes, 100*m.Scores.Source)
	}
	if !m.Phase.Finished() {
		fmt.Fprintf(w, "Progress\t%s ago\n", m.Idle.Round(time.Second))
	}
	return w.Flush()
}

type embeddingsRollbackCommand struct {
	databaseFlags
	Reason string `default:"requested by an administrator" help:"Reason, shown by mnemo embeddings status."`
}

// Run rolls the migration back.
func (c *embeddingsRollbackCommand) Run(ctx context.Context) error {
	db, err := c.databaseFlags.open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.RollBackEmbeddingMigration(ctx, c.Reason); err != nil {
		return err
	}
	_, err = fmt.Println("rolling back; all users are served with the previous model")
	return err
}
