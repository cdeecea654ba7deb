package tenant

// RebalanceArgs are the arguments of the job that gives conversations the room
// a changed quota leaves them.
type RebalanceArgs struct {
	Tenant ID `json:"tenant"`
}

// Kind names the job.
func (RebalanceArgs) Kind() string { return "tenant.rebalance" }

// PurgeArgs are the arguments of the job that removes a tenant's data.
type PurgeArgs struct {
	Tenant ID `json:"tenant"`
}

// Kind names the job.
func (PurgeArgs) Kind() string { return "tenant.purge" }

// PurgeUserArgs are the arguments of the job that removes the data of a user
// who is no longer listed.
type PurgeUserArgs struct {
	Tenant ID     `json:"tenant"`
	User   UserID `json:"user"`
}

// Kind names the job.
func (PurgeUserArgs) Kind() string { return "tenant.purge_user" }
