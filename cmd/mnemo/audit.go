package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/google/uuid"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// auditCommand groups the commands of the audit log (docs/audit.md).
type auditCommand struct {
	Export exportAuditCommand `cmd:"" help:"Write the audit records of a tenant as JSON Lines."`
	Verify verifyAuditCommand `cmd:"" help:"Check an exported file without the database: detect edited, dropped and reordered records."`
}

type exportAuditCommand struct {
	databaseFlags
	Tenant string `help:"Tenant: namespace/name, UID or ID; for a deleted tenant, its ID. Default: changes that belong to no tenant."`
	Output string `short:"o" type:"path" help:"File to write. Default: standard output."`
}

// Run exports the records and verifies them.
func (c *exportAuditCommand) Run(ctx context.Context) error {
	db, err := c.databaseFlags.open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	id, err := c.chain(ctx, db)
	if err != nil {
		return err
	}
	if err := db.RecordCommand(ctx, id, audit.AuditExport); err != nil {
		return err
	}
	if c.Output == "" {
		return audit.Export(ctx, db, id, os.Stdout)
	}
	file, err := os.OpenFile(c.Output, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err := audit.Export(ctx, db, id, file); err != nil {
		_ = file.Close() // the first error counts
		return err
	}
	return file.Close()
}

// chain returns the id of the tenant.
func (c *exportAuditCommand) chain(ctx context.Context, db *postgres.DB) (tenant.ID, error) {
	if c.Tenant == "" {
		return audit.Installation, nil
	}
	records, err := db.Records(ctx, tenant.RecordsOf{})
	if err != nil {
		return "", err
	}
	found, err := findTenant(records, c.Tenant)
	if !fault.Is(err, fault.NotFound) {
		return found.ID, err
	}
	parsed, notID := uuid.Parse(c.Tenant)
	if notID != nil {
		return "", err
	}
	id := tenant.ID(parsed.String()) // of a deleted tenant, if it has records
	return id, db.TenantRecords(ctx, id, func(audit.Head, iter.Seq2[audit.Record, error]) error { return nil })
}

type verifyAuditCommand struct {
	File    string   `arg:"" help:"Exported file; - reads standard input."`
	Anchors []string `name:"anchor" placeholder:"SEQUENCE:HASH" help:"A record that the file must contain: the last one of an earlier export, as printed by this command. Detects a chain that was rewritten or cut off. Repeatable."`
}

// Run verifies the file and prints its last record, the anchor for later exports.
func (c *verifyAuditCommand) Run() error {
	var anchors []audit.Anchor
	for _, s := range c.Anchors {
		a, err := audit.ParseAnchor(s)
		if err != nil {
			return err
		}
		anchors = append(anchors, a)
	}
	var file io.Reader = os.Stdin
	if c.File != "-" {
		opened, err := os.Open(c.File)
		if err != nil {
			return err
		}
		defer opened.Close()
		file = opened
	}
	v, err := audit.Verify(file, anchors...)
	if err != nil {
		return err
	}
	kind := "all records of the tenant"
	if v.Header.User {
		kind = "the records of one user"
	}
	fmt.Printf("verified %d records of tenant %s: %s after %d\n", v.Records, v.Header.Tenant, kind, v.Header.After)
	_, err = fmt.Printf("anchor: %s\n", cmp.Or(anchorText(v.Last), "none"))
	return err
}

// anchorText returns the anchor, or "" if there is no record.
func anchorText(a audit.Anchor) string {
	if a.Hash == "" {
		return ""
	}
	return a.String()
}
