// Package scale tests the operator as a process on real stores: many Tenants at
// once, an idle operator, failover, and kills at any moment. `make bench-tenants`
// runs the tests with a thousand Tenants.
package scale
