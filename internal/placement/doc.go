// Package placement decides where tenants' vectors are stored: in which
// collection and partition, and when they migrate to another one. The rules are
// pure functions; internal/postgres stores placements, internal/milvus creates
// partitions.
package placement
