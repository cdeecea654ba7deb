// Package indexing keeps the vector store consistent with the database: jobs write the units that changed, sweeps
// compare both, and migrations copy a tenant's units to another location.
package indexing
