// Package postgres keeps everything in PostgreSQL, and is the only package
// that imports pgx. Methods open a transaction under a scope; the SQL is in
// queries/, one file for each resource, with its generated code in db/.
package postgres
