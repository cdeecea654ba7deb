// Package jobs runs the background jobs: indexing, rebuilding, rebalancing, purging, and
// the periodic sweep that repairs missed updates. It decides when jobs run and how they are
// retried; the domain packages implement them.
package jobs
