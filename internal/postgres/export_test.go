package postgres

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

// LockTimeout is how long a migration waits for the lock of a table.
const LockTimeout = lockTimeout

// Maximum numbers of imports, and of their parts, that a transaction of a purge deletes.
const (
	PurgeImports = purgeImportsBatch
	PurgeParts   = purgePartsBatch
)
