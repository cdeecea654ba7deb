package tenant

// Scope is the tenant and the user whose data a call may access. Every store and
// index method takes it, so that no query can omit it. Only authentication,
// JobScope and ImportScope create one; TestScopesAreCreatedInFewPlaces lists
// the files that may.
type Scope struct {
	Tenant ID
	User   UserID
}

// JobScope returns the scope of the user that a job's arguments name. The job
// was committed by a transaction that had this scope, or by the operator. An
// administrator's erasure has such a scope too, also when it is repeated in a
// restored database.
func JobScope(tenant ID, user UserID) Scope { return Scope{Tenant: tenant, User: user} }

// ImportScope returns the scope of the user who uploaded an import.
func ImportScope(tenant ID, user UserID) Scope { return Scope{Tenant: tenant, User: user} }
