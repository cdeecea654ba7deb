// Package memory is the domain of memories: short texts in buckets, with
// versions, that are listed in order and found by meaning.
package memory
