// Package placement tests failures of the vector store with real processes: servers
// that are killed during the migration of a tenant, and the loss of the whole Milvus
// volume.
package placement
