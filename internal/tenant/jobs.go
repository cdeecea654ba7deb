package tenant

import "time"

// RebalanceArgs are the arguments of the job that activates and blocks
// conversations after a quota change.
type RebalanceArgs struct {
	Tenant ID `json:"tenant"`
}

// Kind returns the kind of the job.
func (RebalanceArgs) Kind() string { return "tenant.rebalance" }

// PurgeArgs are the arguments of the job that deletes a tenant's data.
type PurgeArgs struct {
	Tenant ID `json:"tenant"`
}

// Kind returns the kind of the job.
func (PurgeArgs) Kind() string { return "tenant.purge" }

// UndoWindow is how long a deletion in the dashboard can be undone.
const UndoWindow = 10 * time.Second

// FinishDeletionsArgs are the arguments of the job that makes deletions final.
type FinishDeletionsArgs struct {
	Tenant ID `json:"tenant"`
	// User is the user whose blocked conversations may become active. NoUser stands for all users: the deletion freed the tenant's
	// quota, or a previous release committed the job. An erasure of a user deletes the jobs with its id.
	User UserID `json:"user,omitempty"`
}

// Kind returns the kind of the job.
func (FinishDeletionsArgs) Kind() string { return "tenant.finish_deletions" }

// PurgeUserArgs are the arguments of the job that deletes the data of a user
// who is no longer listed.
type PurgeUserArgs struct {
	Tenant ID     `json:"tenant"`
	User   UserID `json:"user"`
}

// Kind returns the kind of the job.
func (PurgeUserArgs) Kind() string { return "tenant.purge_user" }
