package devenv

import "fmt"

// MaxNodes is how many clusters with a node can run on this machine at the same
// time.
const MaxNodes = 16

// NodeNetwork returns an address in the network of node i. The addresses are in
// 198.18.0.0/15, which is reserved for tests, so they never belong to anyone.
func NodeNetwork(i, third, fourth int) string {
	return fmt.Sprintf("198.18.%d.%d", 16*i+third, fourth)
}

// NodeHost returns this machine's address as the pods on node i see it.
func NodeHost(i int) string { return NodeNetwork(i, 0, 1) }
