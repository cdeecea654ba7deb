package tenant

// Holdings are a user's share of the tenant's usage.
type Holdings struct {
	Tenant        Usage
	Memories      int64
	Conversations int64 // active ones
}
