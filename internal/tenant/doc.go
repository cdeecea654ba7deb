// Package tenant is the domain of customers: users, quotas, tokens and
// placements. The operator and the API server share it. Scope is the first
// parameter of every store and index method.
package tenant
