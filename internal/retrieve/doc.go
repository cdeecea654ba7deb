// Package retrieve finds the right units of text again: lexical search in
// PostgreSQL and dense search in Milvus, with what Milvus may not know yet
// scored exactly, fused into one ranking. It also keeps the index in step with
// the database. Fusion and packing are pure functions.
package retrieve
