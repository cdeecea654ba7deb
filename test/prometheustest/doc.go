// Package prometheustest runs a real Prometheus in tests, asks it, and reads
// what the chart's rules and dashboards ask of it.
package prometheustest
