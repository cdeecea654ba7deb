//go:build nokubernetes

package main

// kubernetesCommands are the commands that use the Kubernetes API, whose client is more than half of what has to be compiled.
// `make dev` builds without them.
type kubernetesCommands struct{}
