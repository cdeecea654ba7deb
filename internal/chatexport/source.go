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

// source is a file with conversations: as elements of an array, as consecutive
// objects, or as elements of the member "conversations" of an object.
type source struct {
	file     file
	platform string
	wrapped  bool
	first    int // ordinal of its first conversation
	count    int
}

// conversation reads one conversation into c.
func (src source) conversation(s *scanner, limits Limits, c *Conversation) error {
	if object, err := s.is('{'); err != nil || !object {
		if err == nil {
			err = s.skip()
		}
		if err != nil {
			return err
		}
		return valueError("not a JSON object")
	}
	if src.platform == Claude {
		return readClaude(s, limits, c)
	}
	return readChatGPT(s, limits, c)
}

// elements calls each before every conversation of the file.
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
		case src.wrapped:
			err = s.wrapped(each)
		default:
			err = each()
		}
		if err != nil {
			return err
		}
	}
}

// wrapped calls each for the elements of the first list named wrapper.
func (s *scanner) wrapped(each func() error) error {
	found := false
	return s.object(func(name []byte) error {
		if found || string(name) != wrapper {
			return s.skip()
		}
		var err error
		if found, err = s.is('['); err != nil {
			return err
		}
		return s.array(each)
	})
}

// wrapper is the member that contains the conversations of a wrapped list.
const wrapper = "conversations"

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
