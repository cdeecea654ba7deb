// Package fault gives errors the kind an edge needs to answer them: the API
// server maps kinds to HTTP statuses, the operator to conditions, both in one
// place each. A message is a sentence a person can act on and holds no secret.
package fault
