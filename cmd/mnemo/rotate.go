package main

import (
	"context"
	"fmt"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

type rotateCommand struct {
	databaseFlags
	Tenant string `xor:"tenants" required:"" help:"Tenant: namespace/name, or its UID or ID."`
	All    bool   `xor:"tenants" required:"" help:"All tenants, for example after restoring the database from a backup."`
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
	if !c.All {
		found, err := findTenant(records, c.Tenant)
		if err != nil {
			return err
		}
		records = []tenant.Record{found}
	}
	var tenants, tokens int64
	for _, r := range records {
		n, err := db.Revoke(ctx, r.ID)
		if err != nil {
			return err
		}
		tenants++
		tokens += n
	}
	_, err = fmt.Printf("revoked %d tokens of %d tenants; the operator writes new ones to the users' Secrets\n", tokens, tenants)
	return err
}
