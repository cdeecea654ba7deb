// Package telemetry makes what the processes say about themselves: logs, the
// build they are, metrics and, when configured, traces.
//
// What goes to Prometheus is declared in metrics.go, apart from the requests
// (apiserver/metrics.go) and the reconciler (controllers/metrics.go), which
// count where they happen. Labels are bounded: never a user, and a tenant only
// as far as the host allows.
package telemetry
