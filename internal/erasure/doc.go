// Package erasure keeps deleted data deleted when the database is restored from
// a backup. A recorder copies every erasure and revocation to a ledger, a file
// outside the database, and repeats the missing ones in a restored database
// before it is served. docs/adr/0015-erasure-ledger.md explains the design.
package erasure
