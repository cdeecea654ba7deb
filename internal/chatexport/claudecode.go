package chatexport

import (
	"strings"

	"github.com/mnemo-dev/mnemo/internal/chat"
)

// claudeCodeSession reads the records of a session file of Claude Code.
type claudeCodeSession struct {
	thread
	session   string
	asked     map[string]int // the last question of each parent
	questions []bool         // nodes that are questions of the user
	side      []bool         // nodes of a subagent
	title     string         // set by the user
}

func openClaudeCode(limits Limits, c *Conversation) reader {
	return &claudeCodeSession{thread: thread{limits: limits, c: c}, asked: make(map[string]int)}
}

// claudeCodeRecord is a line of the file.
type claudeCodeRecord struct {
	kind      string
	n         node
	agent     string
	side      bool
	role      string
	content   blocks
	isMessage bool
}

func (in *claudeCodeSession) element(s *scanner) error {
	var r claudeCodeRecord
	r.n.message = new(message)
	err := s.object(func(name []byte) (err error) {
		switch string(name) {
		case "sessionId":
			err = in.setOnce(s, &in.session)
		case "summary":
			in.c.Title, err = s.text()
		case "customTitle", "aiTitle":
			in.title, err = s.text()
		default:
			err = r.member(s, name)
		}
		return err
	})
	switch {
	case err != nil || r.n.id == "" && !r.isMessage:
		return err
	case r.isMessage && (r.kind == "user" || r.kind == "assistant"):
		return in.record(&r)
	}
	// Other records are links between messages.
	return in.link(node{id: r.n.id, parent: r.n.parent}, false, r.side)
}

// member reads a member of a record.
func (r *claudeCodeRecord) member(s *scanner, name []byte) (err error) {
	switch string(name) {
	case "type":
		r.kind, err = s.text()
	case "agentId":
		r.agent, err = s.text()
	case "uuid":
		r.n.id, err = s.text()
	case "parentUuid":
		r.n.parent, err = s.text()
	case "timestamp":
		r.n.message.at, err = s.time()
	case "isSidechain":
		r.side, err = s.flag()
	case "isMeta", "isVisibleInTranscriptOnly":
		var yes bool
		yes, err = s.flag()
		r.n.message.hidden = r.n.message.hidden || yes
	case "message":
		err = r.readMessage(s)
	default:
		err = s.skip()
	}
	return err
}

// link adds a node.
func (in *claudeCodeSession) link(n node, question, side bool) error {
	if err := in.add(n); err != nil {
		return err
	}
	in.questions, in.side = append(in.questions, question), append(in.side, side)
	return nil
}

// setOnce reads a text if none was read before.
func (in *claudeCodeSession) setOnce(s *scanner, text *string) error {
	value, err := s.text()
	if *text == "" {
		*text = value
	}
	return err
}

func (r *claudeCodeRecord) readMessage(s *scanner) error {
	return s.object(func(name []byte) (err error) {
		switch string(name) {
		case "role":
			r.role, err = s.text()
		case "content":
			r.isMessage = true
			err = r.content.read(s)
		default:
			err = s.skip()
		}
		return err
	})
}

// record adds a message.
func (in *claudeCodeSession) record(r *claudeCodeRecord) error {
	m := r.n.message
	r.content.note(&in.c.Notes)
	m.id, m.text = r.n.id, r.content.texts.String()
	m.sender = sender(r.role, &in.c.Notes)
	m.hidden = m.hidden || strings.HasPrefix(m.text, "<local-command-")
	question := m.sender == chat.Human && !m.hidden && !r.content.results
	if m.sender == chat.Human && r.content.results {
		m.sender = chat.Tool
	}
	if in.c.ExternalID == "" {
		// A resumed session may continue in another file with the same id.
		in.c.ExternalID = strings.TrimSuffix(in.session+"/"+r.agent, "/")
		if r.n.parent != "" {
			in.c.ExternalID += "/" + r.n.id
		}
	}
	if question && r.n.parent != "" {
		in.asked[r.n.parent] = len(in.nodes)
	}
	return in.link(r.n, question, r.side)
}

// finish omits subagents, which have files of their own in newer versions, and
// what the user went back from: questions that were asked again at the same place,
// with all that followed. Everything else is in the order of the file.
func (in *claudeCodeSession) finish() error {
	if in.title != "" {
		in.c.Title = in.title
	}
	own := false
	for i, side := range in.side {
		own = own || !side && in.nodes[i].message != nil
	}
	abandoned := make(map[string]bool)
	kept := make([]message, 0, len(in.nodes))
	for i, n := range in.nodes {
		last, asked := in.asked[n.parent]
		if abandoned[n.parent] || in.questions[i] && asked && last != i || own && in.side[i] {
			abandoned[n.id] = true
			if n.message != nil {
				in.c.Notes.Branches++
			}
			continue
		}
		if n.message == nil {
			continue
		}
		kept = append(kept, *n.message)
		in.c.UpdatedAt = n.message.at
	}
	in.c.Messages = settle(kept, &in.c.Notes, in.c.CreatedAt)
	return nil
}
