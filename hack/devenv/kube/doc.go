// Package kube runs a Kubernetes control plane without nodes, built from source.
package kube
