// Package postgres implements all stores on PostgreSQL. It is the only package
// that imports pgx. Methods open a transaction under a scope; the SQL is in
// queries/, with one file per resource and generated code in db/.
package postgres
