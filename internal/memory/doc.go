// Package memory implements memories: short, versioned texts in buckets that are
// listed in order and searched by meaning.
package memory
