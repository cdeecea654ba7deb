package devenv

import "fmt"

// MaxNodes is the maximum number of clusters with a node on one machine.
const MaxNodes = 16

// NodeNetwork returns an address in the network of node i. The range
// 198.18.0.0/15 is reserved for tests, so the addresses do not conflict with real
// ones.
func NodeNetwork(i, third, fourth int) string {
	return fmt.Sprintf("198.18.%d.%d", 16*i+third, fourth)
}

// NodeHost returns this machine's address as the pods on node i see it.
func NodeHost(i int) string { return NodeNetwork(i, 0, 1) }
