package chatexport

import "slices"

// node is a place in the tree of a conversation: each edit and each
// regeneration is a branch.
type node struct {
	id, parent string
	message    *message // nil where the tree only forks
}

// errCycle is a tree that is none.
const errCycle = valueError("its messages form a cycle")

// branch returns the way from the root to current in order. When current names
// no node, it is the way to the newest leaf: the newest by time, the last in
// the file among those without. A parent that is not there ends the way.
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

// newestLeaf returns the newest node that no other has as its parent. One
// that shows nothing is only taken when there is no other.
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
