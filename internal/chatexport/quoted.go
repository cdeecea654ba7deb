package chatexport

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// text consumes a value and returns it if it is a string, "" otherwise.
func (s *scanner) text() (string, error) {
	if quoted, err := s.is('"'); err != nil || !quoted {
		if err != nil {
			return "", err
		}
		return "", s.skip()
	}
	s.pos++
	s.quoted = true
	long, err := s.unquote(true)
	if err != nil {
		return "", err
	}
	if long == nil {
		return s.repair(string(s.scratch)), nil
	}
	var b strings.Builder
	b.Grow(len(long)*window + len(s.scratch))
	for i, piece := range long {
		b.Write(piece)
		long[i] = nil
	}
	b.Write(s.scratch)
	return s.repair(b.String()), nil
}

// bytes consumes a string. The result is valid until the next call. Of a string
// longer than the window it is only the end, which matches no known name.
func (s *scanner) bytes() ([]byte, error) {
	s.pos++
	s.quoted = true
	_, err := s.unquote(false)
	return s.scratch, err
}

// unquote decodes the rest of a string into scratch, and what does not fit into
// preceding pieces of the window's size, so that a giant string is in memory at
// most twice. Without keep it drops the pieces.
func (s *scanner) unquote(keep bool) (long [][]byte, err error) {
	s.scratch = s.scratch[:0]
	for {
		b, err := s.unread()
		if err != nil {
			return nil, err
		}
		if room := window - len(s.scratch); room < utf8.UTFMax {
			if keep {
				long = append(long, s.scratch)
				s.scratch = make([]byte, 0, window)
			}
			s.scratch = s.scratch[:0]
			continue
		} else if len(b) > room {
			b = b[:room]
		}
		n, escape := plain(b)
		s.scratch = append(s.scratch, b[:n]...)
		s.pos += n
		switch {
		case n == len(b):
		case escape:
			s.pos++
			if err := s.escape(); err != nil {
				return nil, err
			}
		default:
			s.pos++
			s.quoted = false
			return long, nil
		}
	}
}

// escape decodes the characters after a backslash. Invalid escapes become U+FFFD
// and do not change where the string ends.
func (s *scanner) escape() error {
	s.escaped = true
	b, err := s.unread()
	if err != nil {
		return err
	}
	c := b[0]
	s.pos++
	s.escaped = false
	if i := strings.IndexByte(`"\/bfnrt`, c); i >= 0 {
		s.scratch = append(s.scratch, "\"\\/\b\f\n\r\t"[i])
		return nil
	}
	if c != 'u' {
		s.bad()
		return nil
	}
	r, ok, err := s.hex()
	for err == nil && ok && utf16.IsSurrogate(r) {
		var low rune
		if low, ok, err = s.low(); err != nil || !ok {
			break
		}
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			s.scratch = utf8.AppendRune(s.scratch, pair)
			return nil
		}
		s.bad()
		r = low
	}
	switch {
	case err != nil:
		return err
	case !ok:
		s.bad()
	case r == 0:
		s.removed++
	default:
		s.scratch = utf8.AppendRune(s.scratch, r)
	}
	return nil
}

func (s *scanner) bad() {
	s.scratch = utf8.AppendRune(s.scratch, utf8.RuneError)
	s.replaced++
}

// hex reads the four digits of an escape; ok is false if they are invalid, and
// nothing after them is consumed.
func (s *scanner) hex() (r rune, ok bool, err error) {
	for range 4 {
		b, err := s.unread()
		if err != nil {
			return 0, false, err
		}
		d := strings.IndexByte("0123456789abcdef", b[0]|0x20)
		if d < 0 || b[0] < '0' {
			return 0, false, nil
		}
		s.pos++
		r = r<<4 | rune(d) //nolint:gosec // a digit
	}
	return r, true, nil
}

// low reads the second \u escape of a surrogate pair, if there is one.
func (s *scanner) low() (r rune, ok bool, err error) {
	b, err := s.unread()
	if err != nil || b[0] != '\\' {
		return 0, false, err
	}
	if len(b) < 2 {
		// The window ends between the two escapes: refill it.
		if b, err = s.refill(); err != nil || len(b) < 2 {
			return 0, false, err
		}
	}
	if b[1] != 'u' {
		return 0, false, nil
	}
	s.pos += 2
	return s.hex()
}

// repair makes a string valid for PostgreSQL: it removes U+0000, replaces invalid
// UTF-8 by U+FFFD, and counts both.
func (s *scanner) repair(text string) string {
	if n := strings.Count(text, "\x00"); n > 0 {
		s.removed += n
		text = strings.ReplaceAll(text, "\x00", "")
	}
	if utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	b.Grow(len(text) + len(text)/8)
	for i, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD") {
			s.replaced++
		}
		b.WriteRune(r)
	}
	return b.String()
}
