// Package telemetry provides logging, build information, Prometheus metrics and
// OpenTelemetry traces.
//
// Metrics are declared in metrics.go, except those of HTTP requests
// (apiserver/metrics.go) and of the reconciler (controllers/metrics.go). Labels
// are bounded: metrics never name users, and name at most a configured number of
// tenants.
package telemetry
