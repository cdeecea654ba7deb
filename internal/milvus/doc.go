// Package milvus keeps the vectors in Milvus. It implements retrieve.Index and
// placement.Partitions and is the only package that imports the Milvus SDK.
//
// A collection holds many tenants, each in a partition of its own; every call
// names the partition, and every search filters on the user. Milvus is an index
// that can be rebuilt: nothing read from it is shown before PostgreSQL has
// confirmed it, so it is read at bounded staleness.
package milvus
