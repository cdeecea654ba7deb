// Package scale tests the operator as a process on real stores: many Tenants at
// once, an idle operator, failover, kills at any moment, and many users of an application.
// `make bench-tenants` runs the tests with a thousand Tenants, `make bench-users` with a
// hundred thousand users.
package scale
