// Package filter implements the filter grammar of memories: conditions on their
// attributes, combined with AND, OR and NOT. It parses and validates; internal/postgres
// compiles the result to SQL.
package filter
