// Package e2e holds the tests that see Mnemo as its users do: they bring the
// platform up with hack/up in a directory of their own, apply Tenants with
// kubectl, and speak HTTP with the tokens of the Secrets.
package e2e
