package chatexport

import (
	"strings"

	"github.com/mnemo-dev/mnemo/internal/textrule"
)

// lines joins the pieces of a message's text, one per line. It does not copy a
// single piece.
type lines struct {
	first string
	b     strings.Builder
}

// add appends a piece unless it is blank.
func (l *lines) add(piece string) {
	switch {
	case textrule.IsBlank(piece):
	case l.first == "":
		l.first = piece
	default:
		if l.b.Len() == 0 {
			l.b.WriteString(l.first)
		}
		l.b.WriteByte('\n')
		l.b.WriteString(piece)
	}
}

// labeled appends a piece with a label in brackets, such as "[thinking] …",
// unless it is blank.
func (l *lines) labeled(label, piece string) {
	if !textrule.IsBlank(piece) {
		l.add("[" + label + "] " + piece)
	}
}

// String returns the joined pieces.
func (l *lines) String() string {
	if l.b.Len() == 0 {
		return l.first
	}
	return l.b.String()
}

// label returns "kind: name", or "kind" without a name.
func label(kind, name string) string {
	if name = strings.TrimSpace(name); name == "" {
		return kind
	}
	return kind + ": " + name
}

// flatten consumes a value of unknown structure and adds its strings and numbers,
// each after its name. It writes each name once, so that the text is never much
// longer than the JSON.
func (s *scanner) flatten(out *lines, name string) error {
	c, err := s.peek()
	if err != nil {
		return err
	}
	switch c {
	case '"':
		text, err := s.text()
		if err != nil {
			return err
		}
		out.add(named(name, text))
		return nil
	case '{':
		return s.object(func(name []byte) error {
			return s.flatten(out, s.repair(string(name)))
		})
	case '[':
		return s.array(func() error {
			element := name
			name = ""
			return s.flatten(out, element)
		})
	}
	lit, err := s.literal()
	if err == nil && string(lit) != "null" {
		out.add(named(name, s.repair(string(lit))))
	}
	return err
}

func named(name, text string) string {
	if name == "" || textrule.IsBlank(text) {
		return text
	}
	return name + ": " + text
}
