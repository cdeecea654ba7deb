package chatexport

// assembly reads the conversations of a source, each from one or more values.
type assembly struct {
	export  *Export
	scanner *scanner
	source  source

	index   int // of the current conversation
	started bool
	left    int  // values of the conversation that are not read
	skipped bool // the caller does not want it
	c       Conversation
	reader  reader // nil if the conversation is not read, or failed
	problem error  // why it failed
}

// nestedDepth multiplies the allowed depth of formats with nested messages.
const nestedDepth = 16

// start starts the next conversation.
func (in *assembly) start(skip func(ordinal int) bool) {
	ordinal := in.source.first + in.index
	in.started, in.left = true, in.source.size(in.index)
	in.skipped = skip != nil && skip(ordinal)
	in.c = Conversation{Ordinal: ordinal, File: in.source.file.name}
	in.reader, in.problem = nil, nil
	in.scanner.removed, in.scanner.replaced = 0, 0
	if !in.skipped && !in.export.copies[ordinal] {
		in.reader = in.source.format.open(in.export.reading.limits, &in.c)
	}
}

// element reads a value of the conversation. Errors of a value are problems of the
// conversation if it is its only one; of several values, others are unaffected.
func (in *assembly) element() error {
	in.left--
	if in.reader == nil {
		return in.scanner.skipElement()
	}
	limits := in.export.reading.limits
	depth := limits.Depth
	if in.source.format.nested {
		depth *= nestedDepth
	}
	problem, err := in.scanner.value(limits.Conversation, depth, func() error {
		if object, err := in.scanner.is('{'); err != nil || !object {
			if err == nil {
				err = in.scanner.skip()
			}
			if err != nil {
				return err
			}
			return errNoObject
		}
		return in.reader.element(in.scanner)
	})
	switch {
	case err != nil || problem == nil:
		return err
	case in.source.sizes == nil || problem == errTooMany || problem == errFull: //nolint:errorlint // both are values that value returns unchanged
		in.reader, in.problem = nil, problem
	default:
		in.c.Notes.Invalid++
	}
	return nil
}

// finish returns the conversation, or a *ConversationError that replaces it.
func (in *assembly) finish() (Conversation, error) {
	if in.export.copies[in.c.Ordinal] {
		return in.reject("duplicate of a newer copy in this export", true)
	}
	if in.problem == nil {
		in.problem = in.reader.finish()
	}
	if in.problem != nil {
		return in.reject(in.problem.Error(), false)
	}
	if len(in.c.Messages) == 0 {
		return in.reject("no messages", true)
	}
	in.c.finish(in.source.format, in.scanner)
	return in.c, nil
}

// reject returns the error of the conversation.
func (in *assembly) reject(reason string, skipped bool) (Conversation, error) {
	out := Conversation{Ordinal: in.c.Ordinal, File: in.c.File, Notes: in.c.Notes}
	out.ExternalID, out.Title = cut(in.c.ExternalID, maxID), cut(in.c.Title, maxTitle)
	out.Platform = in.source.format.platform
	return out, &ConversationError{
		File: in.c.File, Ordinal: in.c.Ordinal, Position: in.index + 1,
		ID: out.ExternalID, Skipped: skipped, Reason: reason,
	}
}

// next frees the conversation.
func (in *assembly) next() {
	in.index++
	in.started, in.c, in.reader = false, Conversation{}, nil
}
