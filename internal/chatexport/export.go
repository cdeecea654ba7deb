package chatexport

import (
	"errors"
	"io"
	"iter"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
)

// Options configure Open. The zero value detects the platform.
type Options struct {
	// Platform overrides detection: only conversations of this platform are read,
	// and any JSON file is parsed as its export.
	Platform string
	Limits   Limits
}

// Export is a file with conversations. It is not safe for concurrent use.
type Export struct {
	// Platform is the platform of most of the conversations.
	Platform string
	// Total is the number of conversations, including invalid and empty ones and
	// duplicates.
	Total int
	// Warnings describe parts of the file that were skipped or are missing. At most
	// 20.
	Warnings []string

	reading *reading
	sources []source
	copies  map[int]bool // ordinals of duplicates of newer copies
}

// Conversation is a conversation of an export.
type Conversation struct {
	// Ordinal is its position in the export, from 0. It is stable, so that an import
	// can record what it has stored.
	Ordinal int
	// File is its path in the upload, such as "outer.zip/conversations-001.json".
	File string
	Notes
	// Upsert is the conversation to store. Times that cannot be derived from the
	// export are zero. A null title is "".
	chat.Upsert
}

// Open reads a file of size bytes completely. The error is Invalid if the file is
// damaged, malicious or not an export; other errors are those of r. Reads are
// small and mostly sequential: r should buffer.
func Open(r io.ReaderAt, size int64, options Options) (*Export, error) {
	if err := CheckPlatform(options.Platform); err != nil {
		return nil, err
	}
	rd := &reading{limits: options.Limits.withDefaults(), size: size}
	rd.start()
	w := walker{reading: rd, platform: options.Platform, index: newIndex()}
	if err := w.root(r, size); err != nil {
		return nil, err
	}
	e := &Export{Total: w.total, Warnings: w.warnings, reading: rd, sources: w.sources, copies: w.index.copies}
	e.Platform = mostly(w.sources)
	return e, nil
}

// mostly returns the platform with the most conversations, the first of equals.
func mostly(sources []source) string {
	counts := make(map[string]int)
	best := sources[0].format.platform
	for _, src := range sources {
		platform := src.format.platform
		counts[platform] += src.count
		if counts[platform] > counts[best] {
			best = platform
		}
	}
	return best
}

// Conversations reads the export again and yields its Total conversations in
// order, except those that skip (which may be nil) returns true for. A
// *ConversationError replaces one conversation. Any other error ends the sequence:
// r failed, or its content has changed since Open.
func (e *Export) Conversations(skip func(ordinal int) bool) iter.Seq2[Conversation, error] {
	return func(yield func(Conversation, error) bool) {
		e.reading.start()
		for _, src := range e.sources {
			proceed, err := e.read(src, skip, yield)
			if err != nil {
				yield(Conversation{}, inFile(src.file.name, err))
				return
			}
			if !proceed {
				return
			}
		}
	}
}

// read yields the conversations of one file and reports whether to continue.
func (e *Export) read(src source, skip func(int) bool, yield func(Conversation, error) bool) (bool, error) {
	r, err := src.file.open()
	if err != nil {
		return false, err
	}
	defer r.Close()
	s, err := newJSON(r)
	if err != nil {
		return false, err
	}
	in := &assembly{export: e, scanner: s, source: src}
	stopped := false
	err = src.elements(s, func() error {
		if !in.started {
			in.start(skip)
		}
		if err := in.element(); err != nil || in.left > 0 {
			return err
		}
		if !in.skipped && !yield(in.finish()) {
			stopped = true
		}
		if in.next(); stopped || in.index == src.count {
			return errStopped // what follows is no conversation
		}
		return nil
	})
	switch {
	case stopped:
		return false, nil
	case err != nil && !errors.Is(err, errStopped):
		return false, err
	case in.index != src.count:
		return false, fault.New(fault.Invalid, "%s: the file changed while it was read", src.file.name)
	}
	return true, nil
}

// finish completes the conversation and truncates its fields to the allowed length.
func (c *Conversation) finish(f *format, s *scanner) {
	c.Notes.Removed, c.Notes.Replaced = s.removed, s.replaced
	c.Platform, c.PlatformName = f.platform, f.name
	if f.untitled && c.Title == "" {
		c.Title = headline(c.Messages)
	}
	if c.ExternalID = bounded(c.ExternalID); c.ExternalID == "" {
		// The oldest exports have no ids. The first message never changes, so that
		// later exports yield the same id.
		first := c.Messages[0]
		c.ExternalID = digest(c.CreatedAt.String(), first.ExternalID, cut(first.Text, 1000))
	}
	c.Title = cut(c.Title, maxTitle)
	if c.CreatedAt.IsZero() {
		c.CreatedAt = earliest(c.Messages)
	}
}
