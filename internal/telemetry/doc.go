// Package telemetry makes what the processes say about themselves: logs, and
// the build they are. Metrics are declared by the package that counts.
package telemetry
