// Package queue names the job queues: internal/postgres inserts jobs into them
// and internal/jobs works on them.
package queue

// The queues. Jobs that follow a user's write do not wait behind bulk work.
const (
	Recent  = "default"
	Backlog = "backlog"
	Imports = "imports" // each job takes long and holds part of a file in memory
)
