// Package queue names the job queues: internal/postgres inserts jobs into them
// and internal/jobs runs them.
package queue

// Queues. Each has its own workers, so that long jobs of one kind do not delay jobs of
// another kind.
const (
	Recent      = "default"     // index jobs of small writes
	Backlog     = "backlog"     // index jobs of large writes, and rebalancing
	Imports     = "imports"     // each job runs long and keeps part of a file in memory
	Purges      = "purges"      // of tenants, users and accounts, and of abandoned locations
	Placements  = "placements"  // each job copies all vectors of a tenant
	Webhooks    = "webhooks"    // each job waits for an endpoint of a tenant
	Extractions = "extractions" // each job waits for the chat model
	Periodic    = "periodic"    // sweeps, retention and migrations of the embeddings
)

// Priorities. Queued jobs wait with the priority Waiting until it is their tenant's turn;
// see internal/postgres/fairness.go.
const (
	Turn    = 1
	Waiting = 2
	Later   = 3 // further imports of a user
	Check   = 4 // jobs that check on others
)

// UnusedIndexes are those of River's tables for a search of jobs by arguments and metadata, which Mnemo never does. internal/postgres
// drops them, and internal/jobs does not let River rebuild them.
var UnusedIndexes = []string{"river_job_args_index", "river_job_metadata_index"}
