// Package retrieve searches units of text. It fuses lexical search in PostgreSQL,
// dense search in Milvus, and exact scores of units that Milvus may not return yet
// into one ranking. Fusion and packing are pure functions.
package retrieve
