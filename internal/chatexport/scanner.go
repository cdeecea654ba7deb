package chatexport

import (
	"errors"
	"io"
)

// window is the size of the buffer of a scanner.
const window = 64 << 10

// errTruncated is returned for a stream that ends within a value.
var errTruncated = errors.New("unexpected end of JSON")

// valueError is an error of one value. The stream is intact and can be read after
// the value.
type valueError string

func (e valueError) Error() string { return string(e) }

const (
	errTooLarge = valueError("too large")
	errTooDeep  = valueError("JSON is nested too deeply")
	errSyntax   = valueError("invalid JSON")
)

// ofValue reports whether err is a valueError.
func ofValue(err error) bool {
	_, ok := errors.AsType[valueError](err)
	return ok
}

// scanner reads JSON from a stream. It is strict about values that are read and
// lenient about values that are skipped: skipping only counts brackets outside of
// strings. depth and quoted always describe the position, so that after any error
// it can continue after the invalid value, at the same byte whatever the error.
type scanner struct {
	r        io.Reader
	buf      []byte // the window; buf[pos:end] is unread
	pos, end int
	base     int64 // offset of buf[0] in the stream
	err      error // io.EOF or the error of the reader

	depth    int   // open brackets
	maxDepth int   // 0 for no limit
	quoted   bool  // within a string
	escaped  bool  // within a string, after a backslash
	stop     int64 // offset that the value must not exceed; 0 for no limit

	scratch  []byte
	removed  int // U+0000 removed from strings
	replaced int // invalid bytes and escapes replaced by U+FFFD
}

func newScanner(r io.Reader) *scanner {
	return &scanner{r: r, buf: make([]byte, window)}
}

// offset returns the number of consumed bytes.
func (s *scanner) offset() int64 { return s.base + int64(s.pos) }

// fill ensures that at least one unread byte is buffered.
func (s *scanner) fill() error {
	if s.stop > 0 && s.offset() >= s.stop {
		return errTooLarge
	}
	for s.pos == s.end && s.err == nil {
		s.base += int64(s.end)
		s.pos, s.end = 0, 0
		s.end, s.err = s.r.Read(s.buf)
	}
	switch {
	case s.pos < s.end:
		return nil
	case errors.Is(s.err, io.EOF):
		return errTruncated
	}
	return s.err
}

// unread returns the unread bytes of the window up to stop, at least one.
func (s *scanner) unread() ([]byte, error) {
	if s.pos == s.end || s.stop > 0 {
		if err := s.fill(); err != nil {
			return nil, err
		}
	}
	b := s.buf[s.pos:s.end]
	if s.stop > 0 {
		b = b[:min(int64(len(b)), s.stop-s.offset())]
	}
	return b, nil
}

// refill moves the unread bytes to the front of the window and reads until there
// are at least two.
func (s *scanner) refill() ([]byte, error) {
	s.base += int64(s.pos)
	s.end = copy(s.buf, s.buf[s.pos:s.end])
	s.pos = 0
	for s.end < 2 && s.err == nil {
		var n int
		n, s.err = s.r.Read(s.buf[s.end:])
		s.end += n
	}
	return s.unread()
}

// peek returns the next byte that is not white space without consuming it.
func (s *scanner) peek() (byte, error) {
	for {
		b, err := s.unread()
		if err != nil {
			return 0, err
		}
		for i, c := range b {
			if c != ' ' && c != '\n' && c != '\r' && c != '\t' {
				s.pos += i
				return c, nil
			}
		}
		s.pos += len(b)
	}
}

// ended reports whether only white space is left.
func (s *scanner) ended() (bool, error) {
	_, err := s.peek()
	if errors.Is(err, errTruncated) {
		return true, nil
	}
	return false, err
}

// open consumes an opening bracket.
func (s *scanner) open() error {
	s.pos++
	s.depth++
	if s.maxDepth > 0 && s.depth > s.maxDepth {
		return errTooDeep
	}
	return nil
}

// close consumes a closing bracket.
func (s *scanner) close() {
	s.pos++
	s.depth--
}

// expect consumes white space and the byte.
func (s *scanner) expect(want byte) error {
	c, err := s.peek()
	if err != nil {
		return err
	}
	if c != want {
		return errSyntax
	}
	s.pos++
	return nil
}

// value calls read for a value of at most limit bytes and maxDepth levels. problem
// is an error of the value, which is then consumed; err is an error of the stream.
func (s *scanner) value(limit int64, maxDepth int, read func() error) (problem, err error) {
	depth := s.depth
	s.stop, s.maxDepth = s.offset()+limit, depth+maxDepth
	problem = read()
	s.stop, s.maxDepth = 0, 0
	if problem == nil || !ofValue(problem) {
		return nil, problem
	}
	return problem, s.leave(depth)
}

// literal consumes a number, true, false or null and returns it. It is valid
// until the next call.
func (s *scanner) literal() ([]byte, error) {
	s.scratch = s.scratch[:0]
	for {
		b, err := s.unread()
		if errors.Is(err, errTruncated) && s.depth == 0 && len(s.scratch) > 0 {
			return s.scratch, nil
		}
		if err != nil {
			return nil, err
		}
		i := 0
		for i < len(b) && !ends[b[i]] {
			i++
		}
		// Longer literals are invalid and only need to be skipped.
		if len(s.scratch) < 512 {
			s.scratch = append(s.scratch, b[:i]...)
		}
		s.pos += i
		if i < len(b) {
			return s.scratch, nil
		}
	}
}

// ends are the bytes that end a literal.
var ends = func() (m [256]bool) {
	for _, c := range []byte("\"{}[],: \t\r\n") {
		m[c] = true
	}
	return m
}()
