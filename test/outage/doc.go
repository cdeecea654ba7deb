// Package outage tests `mnemo serve` with a PostgreSQL of its own that it stops.
package outage
