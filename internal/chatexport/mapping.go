package chatexport

import (
	"github.com/mnemo-dev/mnemo/internal/textrule"
)

// mapping reads the tree of messages of a ChatGPT or DeepSeek conversation: an
// object with the nodes by id.
type mapping struct {
	thread
	index   map[string]int // of nodes by id
	links   int            // children of all nodes
	message func(s *scanner) (*message, error)
}

// read reads the tree. The last of several nodes with one id wins.
func (in *mapping) read(s *scanner) error {
	return s.object(func(name []byte) error {
		n := node{id: s.repair(string(name))}
		err := s.object(func(name []byte) (err error) {
			switch string(name) {
			case "parent":
				n.parent, err = s.text()
			case "children":
				err = s.array(func() error {
					if in.links++; in.links > in.limits.Messages {
						return errTooMany
					}
					child, err := s.text()
					n.children = append(n.children, child)
					return err
				})
			case "message":
				n.message, err = in.message(s)
			default:
				err = s.skip()
			}
			return err
		})
		if err != nil {
			return err
		}
		if i, ok := in.index[n.id]; ok {
			in.nodes[i] = n
			return nil
		}
		in.index[n.id] = len(in.nodes)
		return in.add(n)
	})
}

// finish selects the branch that the platform shows. Some exports contain only the
// children of a node, or no links at all: the messages are then a list.
func (in *mapping) finish() error {
	path := in.nodes
	if in.link() {
		var err error
		if path, err = branch(in.nodes, in.leaf); err != nil {
			return err
		}
	} else {
		in.byTime()
	}
	for _, m := range messages(in.nodes) {
		if !m.hidden && !textrule.IsBlank(m.text) {
			in.c.Notes.Branches++
		}
	}
	in.c.Messages = settle(messages(path), &in.c.Notes, in.c.CreatedAt)
	in.c.Notes.Branches -= len(in.c.Messages)
	return nil
}

// link sets missing parents from the lists of children, and reports whether there
// are any links between nodes.
func (in *mapping) link() bool {
	linked := len(in.nodes) < 2
	for i, n := range in.nodes {
		if _, ok := in.index[n.parent]; ok {
			linked = true
		}
		for _, child := range n.children {
			if at, ok := in.index[child]; ok && in.nodes[at].parent == "" && at != i {
				in.nodes[at].parent, linked = n.id, true
			}
		}
	}
	return linked
}
