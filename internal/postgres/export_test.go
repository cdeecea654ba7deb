package postgres

// What tests need of the transactions.
var (
	ReadScope  = (*DB).readScope
	WriteScope = (*DB).writeScope
	InTx       = (*DB).inTx

	SelectMemories = selectMemories
)

// Statements whose plans are tested.
const (
	MemoriesByID = memoriesByID
	PromoteJobs  = promoteJobs
	PromotePlan  = promotePlan
)
