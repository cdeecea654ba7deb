package chatexport

import (
	"errors"
	"io"
	"strings"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// maxForeign is the number of values without a conversation after which a file is
// considered to be something else.
const maxForeign = 16

// errOther is the error of a file that contains something else.
var errOther = errors.New("no conversations")

// probe reads a JSON file, detects its format from the members of its values,
// counts the conversations, and records their ids.
type probe struct {
	s        *scanner
	limits   Limits
	before   int    // conversations of other files
	platform string // the requested platform; "" for any
	format   *format
	path     []string // members that contain the list of conversations
	pending  []head   // values until the format is known
	count    int      // conversations
	sizes    []int32  // values of each conversation, if the format joins them
	last     head
	cut      bool // the last value is incomplete
	known    func(i int, f *format, h head)
	shape    shape
}

// head is what identifies a value and its conversation.
type head struct {
	signs   signs
	id      string
	updated time.Time
	at      time.Time // of an activity
	group   string    // conversation of a row
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
			return p.end()
		}
		err = p.top()
		if errors.Is(err, errTruncated) && p.format != nil && p.format.joins != nil && p.count > 0 {
			p.cut = true
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// top reads a value that is in no other one: a list of values, or a value alone. Of a known
// format, one that is no object is an invalid record.
func (p *probe) top() error {
	c, err := p.s.peek()
	switch {
	case err != nil:
		return err
	case c == '[':
		p.shape.list = true
		return p.s.array(p.element)
	case c == '{' && p.path == nil:
		return p.element()
	case p.format == nil || p.path != nil:
		return errOther
	case strings.ContainsRune("]},:", rune(c)):
		return errSyntax
	}
	return p.element()
}

// end detects the format of a file with a requested platform that has no signs.
func (p *probe) end() error {
	if p.format == nil {
		return p.beginRequested()
	}
	return nil
}

// beginRequested begins with the requested platform; errOther if there is none, or no value
// that could be a conversation: an empty list may be anything.
func (p *probe) beginRequested() error {
	if p.platform == "" || len(p.pending) == 0 || len(p.shape.members) == 0 {
		return errOther
	}
	return p.begin(formatOf(p.platform))
}

// element reads a value, or an object that wraps all of them.
func (p *probe) element() error {
	h, within := head{}, false
	first := p.s.depth == 0 && p.count == 0 && len(p.pending) == 0
	problem, err := p.s.value(p.limits.Conversation, p.limits.Depth, func() error {
		return p.s.object(func(name []byte) error {
			if within {
				return p.s.skip()
			}
			if p.count == 0 && len(p.pending) == 0 {
				p.shape.add(name)
			}
			if first {
				consumed, err := p.list(name)
				if within = p.path != nil; consumed || err != nil {
					return err
				}
			}
			return p.member(&h, name)
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

// list reads the conversations if the member contains all of them, which sets the
// path, and reports whether it consumed the member.
func (p *probe) list(name []byte) (consumed bool, err error) {
	opening, err := p.s.peek()
	switch {
	case err != nil:
		return false, err
	case opening == '[' && wrappers[string(name)]:
		p.path = append(p.path, string(name))
		p.shape.wrapper = string(name)
		p.s.stop, p.s.maxDepth = 0, 0
		return true, p.s.array(p.element)
	case opening == '{' && string(name) == container && p.s.depth == 1:
		return true, p.s.object(func(name []byte) error {
			if p.path == nil {
				if consumed, err := p.list(name); consumed || err != nil {
					if p.path != nil {
						p.path = []string{container, p.path[0]}
					}
					return err
				}
			}
			return p.s.skip()
		})
	}
	return false, nil
}

// note records a value.
func (p *probe) note(h head) error {
	if p.format != nil {
		return p.record(h)
	}
	p.pending = append(p.pending, h)
	p.shape.values++
	if f := detect(h.signs, p.platform); f != nil {
		return p.begin(f)
	}
	if len(p.pending) < maxForeign {
		return nil
	}
	return p.beginRequested()
}

// begin records the pending values once the format is known.
func (p *probe) begin(f *format) error {
	p.format = f
	for _, h := range p.pending {
		if err := p.record(h); err != nil {
			return err
		}
	}
	p.pending = nil
	return nil
}

// record counts a value of the format.
func (p *probe) record(h head) error {
	if p.format.joins != nil && p.count > 0 && p.format.joins(p.last, h) {
		p.sizes[p.count-1]++
		p.last = h
		return nil
	}
	p.last = h
	p.count++
	if p.before+p.count > p.limits.Conversations {
		return &limitError{fault.New(fault.Invalid, "the file contains more than %d conversations", p.limits.Conversations)}
	}
	if p.format.joins != nil {
		p.sizes = append(p.sizes, 1)
	} else if detect(h.signs, p.format.platform) == p.format {
		p.known(p.count-1, p.format, h)
	}
	return nil
}

// member reads a member of a value.
func (p *probe) member(h *head, name []byte) (err error) {
	opening, err := p.s.peek()
	if err != nil {
		return err
	}
	h.signs |= signBits[string(append(name, opening))]
	switch string(name) {
	case "conversation_id", "uuid", "conversationId", "chatID", "context_uuid":
		h.id, err = p.id()
	case "id":
		err = p.fallback(h)
	case "update_time", "updated_at", "updatedAt", "modify_time":
		h.updated, err = p.s.time()
	case "time":
		h.at, err = p.s.time()
	case "Conversation", "ChatName":
		h.group, err = p.id()
	case "header":
		var text string
		text, err = p.s.text()
		if isGemini(text) {
			h.signs |= signBits["header=Gemini"]
		}
	case "conversation":
		err = p.s.object(func(name []byte) error { return p.member(h, name) })
	case "chat", "messages", "entries", "payload":
		err = p.inner(h, string(name))
	default:
		err = p.s.skip()
	}
	return err
}

// inner reads the members of an object, or of the first element of a list, as
// signs.
func (p *probe) inner(h *head, outer string) error {
	members := func() error {
		return p.s.object(func(name []byte) error {
			opening, err := p.s.peek()
			if err != nil {
				return err
			}
			h.signs |= signBits[outer+"."+string(append(name, opening))]
			return p.s.skip()
		})
	}
	if list, err := p.s.is('['); err != nil || !list {
		if err != nil {
			return err
		}
		return members()
	}
	first := true
	return p.s.array(func() error {
		if first {
			first = false
			return members()
		}
		return p.s.skip()
	})
}

// fallback reads "id", which is used if there is no other id.
func (p *probe) fallback(h *head) error {
	id, err := p.id()
	if h.id == "" {
		h.id = id
	}
	return err
}

// id reads an id, of which several values are in memory: a hash of a long one.
func (p *probe) id() (string, error) {
	id, err := p.s.text()
	return bounded(id), err
}

// isGemini reports whether a product of Google is Gemini, formerly Bard. The names
// of products are translated.
func isGemini(product string) bool {
	return strings.Contains(product, "Gemini") || strings.Contains(product, "Bard")
}
