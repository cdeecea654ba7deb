// Package e2e tests Mnemo from the outside: the tests start the platform with hack/up in
// a temporary directory, apply Tenants with kubectl, and send HTTP requests with the
// tokens from the Secrets.
package e2e
