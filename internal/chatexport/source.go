package chatexport

import (
	"bytes"
	"errors"
	"hash/maphash"
	"io"
	"time"
)

// errStopped ends a read when the caller needs no more values.
var errStopped = errors.New("stopped")

// file is a file of the upload, possibly within zips.
type file struct {
	name string
	open func() (io.ReadCloser, error)
}

// source is a file with conversations: JSON values in an array, one after the
// other, or in a list within an object.
type source struct {
	file   file
	format *format
	path   []string // members that contain the list
	first  int      // ordinal of its first conversation
	count  int
	sizes  []int32 // values of each conversation; nil if each is one
}

// size returns the number of values of conversation i.
func (src source) size(i int) int {
	if src.sizes == nil {
		return 1
	}
	return int(src.sizes[i])
}

// elements calls each before every value of the file.
func (src source) elements(s *scanner, each func() error) error {
	for {
		if end, err := s.ended(); err != nil || end {
			return err
		}
		list, err := s.is('[')
		switch {
		case err != nil:
			return err
		case list:
			err = s.array(each)
		case src.path != nil:
			err = s.wrapped(src.path, each)
		default:
			err = each()
		}
		if err != nil {
			return err
		}
	}
}

// wrapped calls each for the elements of the first list at the path.
func (s *scanner) wrapped(path []string, each func() error) error {
	found := false
	return s.object(func(name []byte) error {
		if found || string(name) != path[0] {
			return s.skip()
		}
		opening := byte('[')
		if len(path) > 1 {
			opening = '{'
		}
		var err error
		if found, err = s.is(opening); err != nil {
			return err
		}
		if len(path) > 1 {
			return s.wrapped(path[1:], each)
		}
		return s.array(each)
	})
}

// wrappers are the members that contain the conversations of a wrapped list, which
// may be in another object, the container.
var wrappers = map[string]bool{"conversations": true, "chats": true, "threads": true}

const container = "data"

// newJSON returns a scanner positioned after an optional byte order mark.
func newJSON(r io.Reader) (*scanner, error) {
	s := newScanner(r)
	for s.end < 3 && s.err == nil {
		var n int
		n, s.err = s.r.Read(s.buf[s.end:])
		s.end += n
	}
	if bytes.HasPrefix(s.buf[:s.end], []byte("\uFEFF")) {
		s.pos = 3
	}
	if s.err != nil && !errors.Is(s.err, io.EOF) {
		return nil, s.err
	}
	return s, nil
}

// skipElement skips a conversation.
func (s *scanner) skipElement() error {
	_, err := s.value(1<<62, 1<<30, s.skip)
	return err
}

// index detects duplicate conversations.
type index struct {
	seed   maphash.Seed
	best   map[uint64]seen
	copies map[int]bool
}

// seen is the newest copy of a conversation so far.
type seen struct {
	ordinal int
	updated int64 // milliseconds since 1970
}

func newIndex() *index {
	return &index{seed: maphash.MakeSeed(), best: make(map[uint64]seen), copies: make(map[int]bool)}
}

// add records a conversation. The newest of several copies wins, or the first of
// equally new ones.
func (x *index) add(ordinal int, platform, id string, updated time.Time) {
	if id == "" {
		return
	}
	key := maphash.String(x.seed, platform+"\x00"+id)
	this := seen{ordinal: ordinal}
	if !updated.IsZero() {
		this.updated = updated.UnixMilli()
	}
	best, again := x.best[key]
	switch {
	case !again:
		x.best[key] = this
	case this.updated > best.updated:
		x.copies[best.ordinal] = true
		x.best[key] = this
	default:
		x.copies[ordinal] = true
	}
}
