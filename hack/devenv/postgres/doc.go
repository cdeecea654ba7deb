// Package postgres runs PostgreSQL.
package postgres
