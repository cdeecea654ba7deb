package chatexport

import (
	"time"

	"github.com/mnemo-dev/mnemo/internal/chat"
)

// perplexityThread reads an element of the list "conversations" of the export that
// Perplexity sends on request: questions with their answers.
type perplexityThread struct{ thread }

func openPerplexity(limits Limits, c *Conversation) reader {
	return &perplexityThread{thread{limits: limits, c: c}}
}

func (in *perplexityThread) element(s *scanner) error {
	var id string
	err := s.object(func(name []byte) (err error) {
		switch string(name) {
		case "context_uuid":
			in.c.ExternalID, err = s.text()
		case "uuid", "id", "thread_id":
			id, err = s.text()
		case "context_title", "title":
			in.c.Title, err = s.text()
		case "created_at":
			in.c.CreatedAt, err = s.time()
		case "updated_at":
			in.c.UpdatedAt, err = s.time()
		case "entries":
			err = s.array(func() error { return in.readEntry(s) })
		default:
			err = s.skip()
		}
		return err
	})
	if in.c.ExternalID == "" {
		in.c.ExternalID = id
	}
	return err
}

// readEntry reads a question and its answer.
func (in *perplexityThread) readEntry(s *scanner) error {
	var (
		id, query, answer string
		at                time.Time
		links             lines
	)
	err := s.object(func(name []byte) (err error) {
		switch string(name) {
		case "uuid", "id", "entry_uuid", "backend_uuid":
			id, err = s.text()
		case "query", "query_str":
			query, err = s.text()
		case "answer":
			answer, err = s.text()
		case "created_at", "updated_datetime":
			at, err = s.time()
		case "sources", "web_results", "citations":
			err = s.array(func() error { return readLink(s, &links) })
		default:
			err = s.skip()
		}
		return err
	})
	if err != nil {
		return err
	}
	var out lines
	out.add(answer)
	out.labeled("sources", links.String())
	question := message{sender: chat.Human, text: query, at: at}
	reply := message{sender: chat.Assistant, text: out.String(), at: at}
	if id != "" {
		question.id, reply.id = id+"/query", id+"/answer"
	}
	if err := in.message(question); err != nil {
		return err
	}
	return in.message(reply)
}

// finish sets an id for exports that have none: it stays the same when questions
// are added.
func (in *perplexityThread) finish() error {
	if in.c.ExternalID == "" && len(in.nodes) > 0 {
		in.c.ExternalID = digest(in.c.Title, in.c.CreatedAt.String(), in.nodes[0].message.text)
	}
	return in.thread.finish()
}
