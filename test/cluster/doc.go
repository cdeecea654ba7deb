// Package cluster tests the chart on a real one-node Kubernetes cluster, from installation
// to uninstallation. hack/cluster starts the cluster, which needs root.
package cluster
