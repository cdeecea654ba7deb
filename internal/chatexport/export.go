package chatexport

import (
	"io"
	"iter"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
)

// The platforms whose exports are read, as chat.Upsert.Platform.
const (
	ChatGPT = "chatgpt"
	Claude  = "claude"
)

// platformNames are the platforms' names for people.
var platformNames = map[string]string{ChatGPT: "ChatGPT", Claude: "Claude"}

// Options say how a file is read. The zero value detects the platform.
type Options struct {
	// Platform overrules detection: only conversations of this platform are
	// read, and a JSON file is taken for its export whatever it looks like.
	Platform string
	Limits   Limits
}

// Export is a file that was found to hold conversations. One reading at a
// time: it is not safe for concurrent use.
type Export struct {
	// Platform is the platform of most of the conversations.
	Platform string
	// Total is how many conversations the file holds, those included that
	// cannot be read, are empty, or are there twice.
	Total int
	// Warnings are sentences on what was left out of the file as a whole, such
	// as a part that the manifest names and the file lacks. At most 20.
	Warnings []string

	reading *reading
	sources []source
	copies  map[int]bool // ordinals of copies that another one is better than
}

// Conversation is a conversation of an export as it is stored.
type Conversation struct {
	// Ordinal is its place in the export, from 0: the same in every reading of
	// the same file, so an import can remember what it has done by it.
	Ordinal int
	// File is where in the upload it is, as "outer.zip/conversations-001.json".
	File string
	Notes
	// Upsert is what is stored. Times are when things happened and zero where
	// the export does not say and nothing near does; never the time of import.
	// A null title is "".
	chat.Upsert
}

// Open reads the whole of a file of size bytes and says what is in it. The
// error is Invalid when the file is damaged, hostile, or no export; any other
// is r's own. r is read in small pieces, mostly forward: it should buffer.
func Open(r io.ReaderAt, size int64, options Options) (*Export, error) {
	if _, known := platformNames[options.Platform]; !known && options.Platform != "" {
		return nil, fault.New(fault.Invalid, "platform takes %s or %s", ChatGPT, Claude)
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

// mostly returns the platform of most conversations, the first of equals.
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

// Conversations reads the export again and gives its Total conversations in
// order, but for those whose ordinal skip says yes to; nil for all of them. A
// *ConversationError stands in for a conversation and the next ones follow. Any
// other error is the last: r failed, or gives other bytes than it gave Open.
func (e *Export) Conversations(skip func(ordinal int) bool) iter.Seq2[Conversation, error] {
	return func(yield func(Conversation, error) bool) {
		e.reading.start()
		for _, src := range e.sources {
			goOn, err := e.read(src, skip, yield)
			if err != nil {
				yield(Conversation{}, inFile(src.file.name, err))
				return
			}
			if !goOn {
				return
			}
		}
	}
}

// read gives the conversations of one file and reports whether more are wanted.
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
	refuse := func(reason string, skipped bool) (Conversation, error, error) {
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
		return refuse("it is in the export a second time, and this copy is not the newer one", true)
	}
	s.removed, s.replaced = 0, 0
	wrong, err := s.value(e.reading.limits.Conversation, e.reading.limits.Depth, func() error {
		return src.conversation(s, e.reading.limits, &c)
	})
	switch {
	case err != nil:
		return c, nil, err
	case wrong != nil:
		return refuse(wrong.Error(), false)
	case len(c.Messages) == 0:
		return refuse("it holds no messages", true)
	}
	c.finish(src.platform, s)
	return c, nil, nil
}

// finish brings what was read into the bounds of what is stored.
func (c *Conversation) finish(platform string, s *scanner) {
	c.Notes.Removed, c.Notes.Replaced = s.removed, s.replaced
	c.Platform, c.PlatformName = platform, platformNames[platform]
	if c.ExternalID = bounded(c.ExternalID); c.ExternalID == "" {
		// The oldest exports have none. The first message stays when the
		// conversation goes on, so a later export gives the same id.
		first := c.Messages[0]
		c.ExternalID = digest(c.CreatedAt.String(), first.ExternalID, cut(first.Text, 1000))
	}
	c.Title = cut(c.Title, maxTitle)
	if c.CreatedAt.IsZero() {
		c.CreatedAt = earliest(c.Messages)
	}
}
