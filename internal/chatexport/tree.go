package chatexport

import "slices"

// node is a node in the tree of a conversation. Each edit and each regeneration
// creates a branch.
type node struct {
	id, parent string
	children   []string
	message    *message // nil if the node only forks the tree
}

// errCycle is returned for messages that are not a tree.
const errCycle = valueError("the messages form a cycle")

// branch returns the path from the root to current, or to the newest leaf if
// current is not a node: the newest by time, or else the last in the file. The
// path starts after a missing parent.
func branch(nodes []node, current string) ([]node, error) {
	place := make(map[string]int, len(nodes))
	for i, n := range nodes {
		place[n.id] = i
	}
	at, ok := place[current]
	if !ok {
		if at, ok = newestLeaf(nodes, place); !ok {
			if len(nodes) > 0 {
				return nil, errCycle
			}
			return nil, nil
		}
	}
	way := make([]node, 0, 64)
	for ok {
		if len(way) == len(nodes) {
			return nil, errCycle
		}
		way = append(way, nodes[at])
		at, ok = place[nodes[at].parent]
	}
	slices.Reverse(way)
	return way, nil
}

// newestLeaf returns the newest node without children. It prefers nodes that show
// a message.
func newestLeaf(nodes []node, place map[string]int) (int, bool) {
	inner := make([]bool, len(nodes))
	for _, n := range nodes {
		if i, ok := place[n.parent]; ok {
			inner[i] = true
		}
	}
	best := -1
	for i, n := range nodes {
		if place[n.id] != i || inner[i] {
			continue
		}
		if best < 0 || !n.olderThan(nodes[best]) {
			best = i
		}
	}
	return best, best >= 0
}

func (n node) olderThan(other node) bool {
	switch {
	case n.message == nil:
		return other.message != nil
	case other.message == nil:
		return false
	}
	return n.message.at.Before(other.message.at)
}
