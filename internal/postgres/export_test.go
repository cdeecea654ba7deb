package postgres

// What tests need of the transactions.
var (
	ReadScope = (*DB).readScope
	InTx      = (*DB).inTx
)
