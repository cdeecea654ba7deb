// Package retrieve searches units of text. It fuses lexical search in PostgreSQL,
// dense search in Milvus, and exact scores of units that Milvus may not return yet
// into one ranking. It also keeps the index consistent with the database. Fusion and
// packing are pure functions.
package retrieve
