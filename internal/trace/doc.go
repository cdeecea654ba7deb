// Package trace lets the domain say what a request spends its time on, without
// knowing who listens: metrics, traces, or nobody.
package trace
