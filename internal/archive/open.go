package archive

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/chatexport"
	"github.com/mnemo-dev/mnemo/internal/exactjson"
	"github.com/mnemo-dev/mnemo/internal/fault"
)

// Archive is a validated export. It is not safe for concurrent use.
type Archive struct {
	At     time.Time // when it was exported
	Counts account.Counts
	// Invalid describes the lines that are omitted because they are invalid, with [Limits].SkipInvalid.
	Invalid []string
	// Total is the number of conversations that are not omitted.
	Total int

	checking bool            // the first reading of the file
	omitted  map[string]bool // files and keys of invalid records to which others may belong
	zip      *chatexport.Zip
	limits   Limits
	buckets  map[int64]bool // ids
}

var _ account.Content = (*Archive)(nil)

// ErrOther reports that a file is not a Mnemo export. It may be another platform's.
var ErrOther error = fault.New(fault.Invalid, "the file is not a Mnemo export: "+manifestFile+" does not identify it as one")

// Open reads and validates a file of size bytes. It returns ErrOther if the file is not
// a Mnemo export, and Invalid, naming file and line, if it is damaged, malicious, or
// of a newer version. Any other error comes from r.
func Open(r io.ReaderAt, size int64, limits Limits) (*Archive, error) {
	a := &Archive{limits: limits.withDefaults(), buckets: make(map[int64]bool), omitted: make(map[string]bool)}
	var err error
	if a.zip, err = chatexport.OpenZip(r, size, a.limits.Zip); fault.Is(err, fault.Invalid) {
		return nil, fmt.Errorf("%w: %w", ErrOther, err)
	} else if err != nil {
		return nil, err //nolint:wrapcheck // the message is complete
	}
	m, err := a.manifest()
	if err != nil {
		return nil, err
	}
	a.At, a.Counts = m.ExportedAt, m.counts()
	if err := a.limits.check(a.Counts); err != nil {
		return nil, err
	}
	a.checking = true
	err = a.check()
	a.checking = false
	switch {
	case err != nil && !fault.Is(err, fault.Invalid):
		return nil, err
	case err != nil && len(a.Invalid) > 0:
		return nil, fault.New(fault.Invalid, "%s; %v", a.InvalidLines(), err)
	case err != nil:
		return nil, err
	case len(a.Invalid) > 0 && !a.limits.SkipInvalid:
		return nil, fault.New(fault.Invalid, "%s", a.InvalidLines())
	}
	return a, nil
}

// manifest reads the manifest, or returns ErrOther if there is none.
func (a *Archive) manifest() (manifest, error) {
	var m manifest
	f, err := a.zip.Open(manifestFile)
	if errors.Is(err, chatexport.ErrNoFile) {
		return m, ErrOther
	}
	if err != nil {
		return m, err //nolint:wrapcheck // the message is complete
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxLine))
	if err != nil {
		return m, a.zip.About(manifestFile, err) //nolint:wrapcheck // the message is complete
	}
	if exactjson.Unmarshal(text, &m) != nil || m.Format != format {
		return m, ErrOther
	}
	if m.Version != version {
		return m, fault.New(fault.Invalid, "the export has format version %d; this server supports version %d", m.Version, version)
	}
	return m, nil
}

// check reads and validates all records.
func (a *Archive) check() error {
	defaults := 0
	for b, err := range a.Buckets() {
		switch {
		case err != nil:
			return err
		case a.buckets[b.ID]:
			return fault.New(fault.Invalid, "%s: two buckets have the id %d", bucketsFile, b.ID)
		case b.Default:
			defaults++
		}
		a.buckets[b.ID] = true
	}
	if defaults > 1 { // there is none if the account was deleted while memories were added to another bucket
		return fault.New(fault.Invalid, "%s: one bucket must be the default, not %d", bucketsFile, defaults)
	}
	for h, err := range a.MemoryHistories() {
		if err != nil {
			return err
		}
		if !a.buckets[h.Bucket] && !a.omitted[bucketsFile+bucket{ID: h.Bucket}.key()] {
			return fault.New(fault.Invalid, "%s: memory %s is in bucket %d, which is not in %s", memoriesFile, h.ID, h.Bucket, bucketsFile)
		}
	}
	for _, err := range a.Transcripts() {
		if err != nil {
			return err
		}
		a.Total++
	}
	return nil
}

// Buckets implements account.Content.
func (a *Archive) Buckets() iter.Seq2[account.Bucket, error] {
	return records(a, bucketsFile, a.Counts.Buckets, checkBucket, toBucket)
}

// Memories implements account.Content.
func (a *Archive) Memories() iter.Seq2[account.Memory, error] {
	return records(a, memoriesFile, a.Counts.Memories, checkMemory, toMemory)
}

// Versions implements account.Content.
func (a *Archive) Versions() iter.Seq2[account.Version, error] {
	return records(a, versionsFile, a.Counts.Versions, checkVersion, toVersion)
}

// Conversations implements account.Content.
func (a *Archive) Conversations() iter.Seq2[chat.Conversation, error] {
	return records(a, conversationsFile, a.Counts.Conversations, checkConversation, toConversation)
}

// Messages implements account.Content.
func (a *Archive) Messages() iter.Seq2[account.Message, error] {
	return records(a, messagesFile, a.Counts.Messages, checkMessage, toMessage)
}
