// Package queue names the job queues: internal/postgres inserts jobs into them
// and internal/jobs runs them.
package queue

// Queues. Jobs of a user's write have their own queue, so that bulk jobs do not delay
// them.
const (
	Recent  = "default"
	Backlog = "backlog"
	Imports = "imports" // each job runs long and keeps part of a file in memory
)
