// Package node runs a Kubernetes cluster with one real node. It needs root.
package node
