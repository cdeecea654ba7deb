package postgres

// What tests need of the transactions.
var (
	ReadScope  = (*DB).readScope
	WriteScope = (*DB).writeScope
	InTx       = (*DB).inTx

	SelectMemories = selectMemories
)

// MemoriesByID is memoriesByID.
const MemoriesByID = memoriesByID
