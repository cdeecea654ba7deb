package main

import (
	"context"
	"fmt"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

type rotateCommand struct {
	databaseFlags
	Tenant tenant.ID `xor:"whose" required:"" help:"id of the tenant, as in its Tenant's status.id."`
	All    bool      `xor:"whose" required:"" help:"Every tenant, for example after the database was restored from a backup."`
}

// Run revokes every token, password and session; the operator issues new ones.
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
		return fmt.Errorf("there is no tenant %s: `mnemo tenants` lists them", c.Tenant)
	}
	_, err = fmt.Printf("revoked %d tokens of %d tenants: the operator writes new ones into the users' Secrets\n", tokens, tenants)
	return err
}
