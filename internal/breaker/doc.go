// Package breaker has a circuit breaker for calls to a dependency.
package breaker
