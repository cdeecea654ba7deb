package chatexport

// leave consumes input until only depth brackets are open.
func (s *scanner) leave(depth int) error {
	for s.depth > depth || s.quoted {
		if s.quoted {
			if err := s.skipQuoted(); err != nil {
				return err
			}
			continue
		}
		b, err := s.unread()
		if err != nil {
			return err
		}
		i := 0
		for i < len(b) && !marks[b[i]] {
			i++
		}
		s.pos += i
		if i == len(b) {
			continue
		}
		switch b[i] {
		case '"':
			s.pos++
			s.quoted = true
		case '{', '[':
			if err := s.open(); err != nil {
				return err
			}
		default:
			s.close()
		}
	}
	return nil
}

// marks are the bytes at which skipping stops.
var marks = func() (m [256]bool) {
	for _, c := range []byte(`"{}[]`) {
		m[c] = true
	}
	return m
}()

// skip consumes a value of any kind.
func (s *scanner) skip() error {
	c, err := s.peek()
	if err != nil {
		return err
	}
	depth := s.depth
	switch c {
	case '"':
		s.pos++
		s.quoted = true
		return s.leave(depth)
	case '{', '[':
		if err := s.open(); err != nil {
			return err
		}
		return s.leave(depth)
	case '}', ']', ',', ':':
		return errSyntax
	}
	_, err = s.literal()
	return err
}

// skipQuoted consumes the rest of a string.
func (s *scanner) skipQuoted() error {
	for s.quoted {
		b, err := s.unread()
		if err != nil {
			return err
		}
		if s.escaped {
			s.pos++
			s.escaped = false
			continue
		}
		n, escape := plain(b)
		s.pos += n
		switch {
		case n == len(b):
		case !escape:
			s.pos++
			s.quoted = false
		default:
			s.pos++
			s.escaped = true
		}
	}
	return nil
}

// plain returns the number of bytes before the next quote or backslash, and
// whether it is a backslash.
func plain(b []byte) (n int, escape bool) {
	for i, c := range b {
		if c == '"' || c == '\\' {
			return i, c == '\\'
		}
	}
	return len(b), false
}
