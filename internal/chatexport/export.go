package chatexport

import (
	"io"
	"iter"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
)

// The supported platforms, as in chat.Upsert.Platform.
const (
	ChatGPT = "chatgpt"
	Claude  = "claude"
)

// platformNames are the display names of the platforms.
var platformNames = map[string]string{ChatGPT: "ChatGPT", Claude: "Claude"}

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
	if _, known := platformNames[options.Platform]; !known && options.Platform != "" {
		return nil, fault.New(fault.Invalid, "platform must be %s or %s", ChatGPT, Claude)
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
	best := sources[0].platform
	for _, src := range sources {
		counts[src.platform] += src.count
		if counts[src.platform] > counts[best] {
			best = src.platform
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
			more, err := e.read(src, skip, yield)
			if err != nil {
				yield(Conversation{}, inFile(src.file.name, err))
				return
			}
			if !more {
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
	i, stopped := 0, false
	err = src.elements(s, func() error {
		ordinal := src.first + i
		i++
		if skip != nil && skip(ordinal) {
			return s.skipElement()
		}
		c, problem, err := e.conversation(s, src, ordinal)
		if err != nil {
			return err
		}
		if !yield(c, problem) {
			stopped = true
			return errStopped
		}
		return nil
	})
	switch {
	case stopped:
		return false, nil
	case err != nil:
		return false, err
	case i != src.count:
		return false, fault.New(fault.Invalid, "%s: the file changed while it was read", src.file.name)
	}
	return true, nil
}

// conversation reads one conversation. problem is a *ConversationError or nil.
func (e *Export) conversation(s *scanner, src source, ordinal int) (c Conversation, problem, err error) {
	c = Conversation{Ordinal: ordinal, File: src.file.name}
	reject := func(reason string, skipped bool) (Conversation, error, error) {
		out := Conversation{Ordinal: ordinal, File: src.file.name, Notes: c.Notes}
		out.ExternalID, out.Title, out.Platform = cut(c.ExternalID, maxID), cut(c.Title, maxTitle), src.platform
		return out, &ConversationError{
			File: src.file.name, Ordinal: ordinal, Place: ordinal - src.first + 1,
			ID: out.ExternalID, Skipped: skipped, Reason: reason,
		}, nil
	}
	if e.copies[ordinal] {
		if err := s.skipElement(); err != nil {
			return c, nil, err
		}
		return reject("duplicate of a newer copy in this export", true)
	}
	s.removed, s.replaced = 0, 0
	wrong, err := s.value(e.reading.limits.Conversation, e.reading.limits.Depth, func() error {
		return src.conversation(s, e.reading.limits, &c)
	})
	switch {
	case err != nil:
		return c, nil, err
	case wrong != nil:
		return reject(wrong.Error(), false)
	case len(c.Messages) == 0:
		return reject("no messages", true)
	}
	c.finish(src.platform, s)
	return c, nil, nil
}

// finish completes the conversation and truncates its fields to the allowed length.
func (c *Conversation) finish(platform string, s *scanner) {
	c.Notes.Removed, c.Notes.Replaced = s.removed, s.replaced
	c.Platform, c.PlatformName = platform, platformNames[platform]
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
