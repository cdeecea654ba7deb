package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

type copyCommand struct {
	OwnerURL       string `name:"database-owner-url" env:"DATABASE_OWNER_URL" required:"" help:"PostgreSQL URL of the role that owns the database."`
	TargetOwnerURL string `name:"target-database-owner-url" env:"MNEMO_TARGET_DATABASE_OWNER_URL" required:"" help:"PostgreSQL URL of the role that owns the target database. It must have the same schema version and a different cell number."`
	Tenant         string `arg:"" name:"name" help:"Tenant to copy: namespace/name, or its UID or ID. It must be suspended or retained."`
	Format         string `enum:"text,json" default:"text" help:"Format of the report: ${enum}."`
}

// Run copies the tenant and prints the rows of each table.
func (c *copyCommand) Run(ctx context.Context) error {
	report, err := postgres.CopyTenant(ctx, postgres.CopyConfig{SourceURL: c.OwnerURL, TargetURL: c.TargetOwnerURL, Tenant: c.Tenant})
	if err != nil {
		return err
	}
	return c.print(os.Stdout, report)
}

func (c *copyCommand) print(to io.Writer, r tenant.CopyReport) error {
	if c.Format == "json" {
		out := json.NewEncoder(to)
		out.SetEscapeHTML(false)
		out.SetIndent("", "  ")
		return out.Encode(r)
	}
	fmt.Fprintf(to, "copied tenant %s (%s) from cell %d to cell %d: %d rows, %d jobs\n", r.Name, r.Tenant, int64(r.SourceCell), int64(r.TargetCell), r.Rows(), r.Jobs)
	fmt.Fprintf(to, "vectors: %d copied, %d to be computed by the target\n\n", r.Vectors, r.VectorsToCompute)
	w := tabwriter.NewWriter(to, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "TABLE\tROWS\tCHECKSUM")
	for _, t := range r.Tables {
		fmt.Fprintf(w, "%s\t%d\t%s\n", t.Table, t.Rows, t.Checksum)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(to, "\nNot copied:")
	for _, k := range r.NotCopied {
		fmt.Fprintf(to, "- %s: %s\n", k.Table, k.Reason)
	}
	return nil
}
