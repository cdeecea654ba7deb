// Package trace lets domain packages mark the stages of a request without
// depending on the metrics and tracing libraries that record them.
package trace
