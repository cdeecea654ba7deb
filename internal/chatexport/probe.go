package chatexport

import (
	"errors"
	"io"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// maxForeign is the number of elements without a conversation after which a file
// is considered to be something else.
const maxForeign = 16

// errOther is the error of a file that contains something else.
var errOther = errors.New("no conversations")

// probe reads a JSON file, detects the platform from the structure of the
// conversations, counts them, and records their ids.
type probe struct {
	s        *scanner
	limits   Limits
	before   int    // conversations of other files
	platform string // "" until the first conversation
	wrapped  bool
	heads    []head // of conversations, until the platform is known
	count    int
	known    func(i int, platform string, h head)
}

// head is the identity of a conversation.
type head struct {
	platform string
	id       string
	updated  time.Time
}

// run reads the file to its end; errOther if it contains something else.
func (p *probe) run(r io.Reader) error {
	s, err := newJSON(r)
	if err != nil {
		return err
	}
	p.s = s
	for {
		end, err := s.ended()
		if err != nil {
			return err
		}
		if end {
			break
		}
		c, err := s.peek()
		switch {
		case err != nil:
			return err
		case c == '[':
			err = s.array(p.element)
		case c == '{' && !p.wrapped:
			err = p.element()
		default:
			return errOther
		}
		if err != nil {
			return err
		}
	}
	if p.platform == "" {
		return errOther
	}
	return nil
}

// element reads a conversation, or an object that wraps all of them.
func (p *probe) element() error {
	top := p.s.depth == 0
	h, within := head{}, false
	problem, err := p.s.value(p.limits.Conversation, p.limits.Depth, func() error {
		return p.s.object(func(name []byte) (err error) {
			if within {
				return p.s.skip()
			}
			switch string(name) {
			case "mapping":
				h.platform, err = p.found(ChatGPT, h.platform, '{')
			case "chat_messages":
				h.platform, err = p.found(Claude, h.platform, '[')
			case "conversation_id", "uuid":
				h.id, err = p.s.text()
			case "id":
				err = p.fallback(&h)
			case "update_time", "updated_at":
				h.updated, err = p.s.time()
			case wrapper:
				list, err := p.s.is('[')
				if err != nil || !list || !top || p.count > 0 {
					return orSkip(p.s, err)
				}
				within, p.wrapped = true, true
				p.s.stop, p.s.maxDepth = 0, 0
				return p.s.array(p.element)
			default:
				err = p.s.skip()
			}
			return err
		})
	})
	switch {
	case err != nil:
		return err
	case within:
		return problem // the list is invalid, not one conversation
	}
	return p.note(h)
}

func orSkip(s *scanner, err error) error {
	if err != nil {
		return err
	}
	return s.skip()
}

// fallback reads "id", which is used if there is no other id.
func (p *probe) fallback(h *head) error {
	id, err := p.s.text()
	if h.id == "" {
		h.id = id
	}
	return err
}

// found skips a member that only conversations of the platform have.
func (p *probe) found(platform, before string, opening byte) (string, error) {
	is, err := p.s.is(opening)
	if err != nil {
		return before, err
	}
	if is && before == "" {
		before = platform
	}
	return before, p.s.skip()
}

// note records a conversation.
func (p *probe) note(h head) error {
	p.count++
	if p.before+p.count > p.limits.Conversations {
		return &limitError{fault.New(fault.Invalid, "the file contains more than %d conversations", p.limits.Conversations)}
	}
	if p.platform == "" {
		p.platform = h.platform
	}
	p.heads = append(p.heads, h)
	if p.platform == "" {
		if p.count >= maxForeign {
			return errOther
		}
		return nil
	}
	p.flush()
	return nil
}

// flush reports the recorded conversations once the platform is known.
func (p *probe) flush() {
	first := p.count - len(p.heads)
	for i, h := range p.heads {
		if h.platform == p.platform {
			p.known(first+i, p.platform, h)
		}
	}
	p.heads = p.heads[:0]
}
