package postgres

import (
	"context"
	"io/fs"
)

// What tests need of the transactions.
var (
	ReadScope = (*DB).readScope
	InScope   = (*DB).inScope
	InTx      = (*DB).inTx

	SelectMemories  = selectMemories
	PageLimit       = pageLimit
	WithGenericPlan = withGenericPlan
)

// Statements whose plans are tested.
const (
	MemoriesByID = memoriesByID
	PromoteJobs  = promoteJobs
	PromotePlan  = promotePlan
	Unconfirmed  = unconfirmedUnits
)

// SchemaFiles are the files that Migrate applies.
var SchemaFiles = schemaFiles

// MigrateWith is Migrate of a binary with other files.
func MigrateWith(ctx context.Context, c MigrateConfig, files fs.FS) (int64, error) {
	c.files = files
	return Migrate(ctx, c)
}

// LockTimeout is how long a migration waits for the lock of a table.
const LockTimeout = lockTimeout

// Maximum numbers of imports, and of their parts, that a transaction of a purge deletes.
const (
	PurgeImports = purgeImportsBatch
	PurgeParts   = purgePartsBatch
)
