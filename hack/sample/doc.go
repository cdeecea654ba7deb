// Package sample applies the Tenant of config/samples, of which `make up` and
// `make cluster` show how to be its users.
package sample
