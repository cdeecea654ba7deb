// Package fault classifies errors by kind. The API server maps kinds to HTTP
// statuses and the operator maps them to conditions, each in one place. Messages
// are actionable and contain no secrets.
package fault
