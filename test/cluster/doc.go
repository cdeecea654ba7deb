// Package cluster holds the test of Mnemo as its chart installs it, on a real
// Kubernetes with a real node: hack/cluster brings it up in a directory of its
// own, which needs root.
package cluster
