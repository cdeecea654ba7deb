package chatexport

import "slices"

// thread collects the messages of a conversation.
type thread struct {
	limits Limits
	c      *Conversation
	leaf   string // id of the last message that the platform shows; "" if unknown
	nodes  []node
	size   int64 // of all texts, see exportedSize
}

var (
	errTooMany  = valueError("too many messages")
	errFull     = valueError("the texts are too large")
	errNoObject = valueError("not a JSON object")
)

// add appends a message.
func (t *thread) add(n node) error {
	if len(t.nodes) >= t.limits.Messages {
		return errTooMany
	}
	if n.message != nil {
		if t.size += exportedSize(n.message.text); t.size > t.limits.Conversation {
			return errFull
		}
	}
	t.nodes = append(t.nodes, n)
	return nil
}

// exportedSize is the size of a text with control characters as six bytes each, which JSON needs: a message must fit in a
// line of an export of the account. A file may contain them as one byte.
func exportedSize(text string) int64 {
	size := int64(len(text))
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\n' && c != '\r' && c != '\t' {
			size += 5
		}
	}
	return size
}

// message appends a message of a conversation without branches.
func (t *thread) message(m message) error { return t.add(node{id: m.id, message: &m}) }

// finish selects the branch that the platform shows, or all messages in order if
// the export has no branches.
func (t *thread) finish() error {
	path := t.nodes
	if branches(t.nodes) {
		var err error
		if path, err = branch(t.nodes, t.leaf); err != nil {
			return err
		}
	}
	t.c.Messages = settle(messages(path), &t.c.Notes, t.c.CreatedAt)
	t.c.Notes.Branches += len(messages(t.nodes)) - len(messages(path))
	return nil
}

// messages returns the messages of a path.
func messages(path []node) []message {
	out := make([]message, 0, len(path))
	for _, n := range path {
		if n.message == nil {
			continue
		}
		m := *n.message
		if m.id == "" {
			m.id = n.id
		}
		out = append(out, m)
	}
	return out
}

// branches reports whether the messages form a tree: each has a unique id and a
// parent among them, except for roots, which share a missing parent. Anything else
// is a list, so that no message is lost.
func branches(nodes []node) bool {
	ids := make(map[string]bool, len(nodes))
	for _, n := range nodes {
		if n.id == "" || ids[n.id] {
			return false
		}
		ids[n.id] = true
	}
	roots := make(map[string]bool)
	parents := false
	for _, n := range nodes {
		if ids[n.parent] {
			parents = true
		} else {
			roots[n.parent] = true
		}
	}
	return parents && len(roots) <= 1
}

// byTime sorts the messages by time if all have one.
func (t *thread) byTime() {
	for _, n := range t.nodes {
		if n.message == nil || n.message.at.IsZero() {
			return
		}
	}
	slices.SortStableFunc(t.nodes, func(a, b node) int { return a.message.at.Compare(b.message.at) })
}
