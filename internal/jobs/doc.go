// Package jobs runs what was committed to be done later: indexing, rebuilding,
// re-balancing, purging, and the sweep that repairs what all of it missed. The
// work itself is in the domain; here is when it runs and how it is retried.
package jobs
