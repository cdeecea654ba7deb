// Package milvus keeps the vectors in Milvus. It implements retrieve.Index, indexing.Store and
// placement.Partitions and is the only package that imports the Milvus SDK.
//
// A collection holds many tenants, each in its own partition or under its own
// partition key. Every call names the location, and every search filters on the user. Milvus is an index
// that can be rebuilt: results are checked against PostgreSQL before they are shown, so
// it is read at bounded staleness.
package milvus
