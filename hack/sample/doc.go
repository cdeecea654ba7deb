// Package sample applies the Tenant of config/samples. `make up` and `make
// cluster` print the credentials of its users.
package sample
