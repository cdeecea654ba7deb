package postgres

// What tests need of the transactions.
var (
	ReadScope  = (*DB).readScope
	WriteScope = (*DB).writeScope
	InTx       = (*DB).inTx
)
