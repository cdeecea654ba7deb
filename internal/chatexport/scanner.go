package chatexport

import (
	"errors"
	"io"
)

// window is how much of the input a scanner holds.
const window = 64 << 10

// errTruncated is a stream that ends within a value.
var errTruncated = errors.New("the JSON ends in the middle")

// valueError is what is wrong with one value, not with the stream: reading can
// go on behind the value.
type valueError string

func (e valueError) Error() string { return string(e) }

const (
	errTooLarge = valueError("it is too large")
	errTooDeep  = valueError("its JSON nests too deep")
	errSyntax   = valueError("its JSON is broken")
)

// ofValue reports whether err is about one value.
func ofValue(err error) bool {
	_, ok := errors.AsType[valueError](err)
	return ok
}

// scanner pulls JSON from a stream. It is strict about what it is asked to
// read and lenient about what it is asked to skip: skipping only counts
// brackets, outside of strings. Its depth and quoted always say where in the
// brackets it is, so that after any error it can go on behind the value that
// was wrong, at the same byte whatever was wrong with it.
type scanner struct {
	r        io.Reader
	buf      []byte // the window; buf[pos:end] is unread
	pos, end int
	base     int64 // offset of buf[0] in the stream
	err      error // why the stream gives no more: io.EOF or what the reader said

	depth    int   // brackets that are open
	maxDepth int   // 0 for any
	quoted   bool  // within a string
	escaped  bool  // within a string, behind a backslash
	stop     int64 // offset behind which the value may not reach; 0 for any

	scratch  []byte
	removed  int // U+0000 left out of strings
	replaced int // bytes and escapes that were no characters, now U+FFFD
}

func newScanner(r io.Reader) *scanner {
	return &scanner{r: r, buf: make([]byte, window)}
}

// offset returns how many bytes were consumed.
func (s *scanner) offset() int64 { return s.base + int64(s.pos) }

// fill makes at least one unread byte available.
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

// rest returns the unread bytes of the window, at least one, none behind stop.
func (s *scanner) rest() ([]byte, error) {
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

// more moves the unread bytes to the front of the window and reads until there
// are two of them.
func (s *scanner) more() ([]byte, error) {
	s.base += int64(s.pos)
	s.end = copy(s.buf, s.buf[s.pos:s.end])
	s.pos = 0
	for s.end < 2 && s.err == nil {
		var n int
		n, s.err = s.r.Read(s.buf[s.end:])
		s.end += n
	}
	return s.rest()
}

// peek returns the next byte that is not white space, and leaves it there.
func (s *scanner) peek() (byte, error) {
	for {
		b, err := s.rest()
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

// ended reports whether nothing but white space is left.
func (s *scanner) ended() (bool, error) {
	_, err := s.peek()
	if errors.Is(err, errTruncated) {
		return true, nil
	}
	return false, err
}

// open consumes a bracket that opens.
func (s *scanner) open() error {
	s.pos++
	s.depth++
	if s.maxDepth > 0 && s.depth > s.maxDepth {
		return errTooDeep
	}
	return nil
}

// close consumes a bracket that closes.
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

// value has a value read that may take limit bytes and nest maxDepth deep.
// problem is what is wrong with the value, which is then behind us; err is
// what is wrong with the stream.
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
		b, err := s.rest()
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
		// No number is that long; what is longer only has to be passed over.
		if len(s.scratch) < 512 {
			s.scratch = append(s.scratch, b[:i]...)
		}
		s.pos += i
		if i < len(b) {
			return s.scratch, nil
		}
	}
}

// ends are the bytes a literal ends before.
var ends = func() (m [256]bool) {
	for _, c := range []byte("\"{}[],: \t\r\n") {
		m[c] = true
	}
	return m
}()
