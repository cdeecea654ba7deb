// Package prometheustest runs a real Prometheus in tests, queries it, and evaluates
// the queries of the chart's rules and dashboards.
package prometheustest
