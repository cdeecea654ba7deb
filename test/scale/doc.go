// Package scale holds the operator, as a process on real stores, to many
// Tenants at once, to doing nothing when there is nothing to do, to a second one
// that takes over, and to being killed at any moment. It has tests only; `make
// bench-tenants` runs them with a thousand Tenants.
package scale
