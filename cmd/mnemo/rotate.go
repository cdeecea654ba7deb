package main

import (
	"context"
	"fmt"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

type rotateCommand struct {
	databaseFlags
	Tenant tenant.ID `xor:"tenants" required:"" help:"ID of the tenant, as in status.id of its Tenant."`
	All    bool      `xor:"tenants" required:"" help:"All tenants, for example after restoring the database from a backup."`
}

// Run revokes all tokens, passwords and sessions. The operator issues new ones.
func (c *rotateCommand) Run(ctx context.Context) error {
	db, err := c.databaseFlags.open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	records, err := db.Records(ctx, tenant.RecordsOf{})
	if err != nil {
		return err
	}
	var tenants, tokens int64
	for _, r := range records {
		if !c.All && r.ID != c.Tenant && r.Resource != c.Tenant {
			continue
		}
		n, err := db.Revoke(ctx, r.ID)
		if err != nil {
			return err
		}
		tenants++
		tokens += n
	}
	if tenants == 0 && !c.All {
		return fmt.Errorf("tenant %s not found; list tenants with `mnemo tenants list`", c.Tenant)
	}
	_, err = fmt.Printf("revoked %d tokens of %d tenants; the operator writes new ones to the users' Secrets\n", tokens, tenants)
	return err
}
