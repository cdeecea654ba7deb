// Package tenant is the domain of customers: who they are, what they may hold
// and where it is placed. The operator and the API server both work through it.
// Scope is the type every store and index method takes first.
package tenant
