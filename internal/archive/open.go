package archive

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/chatexport"
	"github.com/mnemo-dev/mnemo/internal/fault"
)

// Archive is a file that was read once and found good. One reading at a time:
// it is not safe for concurrent use.
type Archive struct {
	At     time.Time // when it was made
	Counts account.Counts

	zip     *chatexport.Zip
	limits  Limits
	buckets map[int64]bool // the ids there are
}

var _ account.Content = (*Archive)(nil)

// ErrOther says that a file is no archive of ours: it may be another export.
var ErrOther error = fault.New(fault.Invalid, "the file is no export of Mnemo: its "+manifestFile+" does not say so")

// Open reads the whole of a file of size bytes. ErrOther when it is none of
// ours; otherwise Invalid, naming file and line, when it is damaged, hostile,
// or of a newer version. Any other error is r's own.
func Open(r io.ReaderAt, size int64, limits Limits) (*Archive, error) {
	a := &Archive{limits: limits.withDefaults(), buckets: make(map[int64]bool)}
	var err error
	if a.zip, err = chatexport.OpenZip(r, size, a.limits.Zip); fault.Is(err, fault.Invalid) {
		return nil, fmt.Errorf("%w: %w", ErrOther, err)
	} else if err != nil {
		return nil, err //nolint:wrapcheck // it says all there is to say
	}
	m, err := a.manifest()
	if err != nil {
		return nil, err
	}
	a.At, a.Counts = m.ExportedAt, m.counts()
	if err := a.limits.check(a.Counts); err != nil {
		return nil, err
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	return a, nil
}

// manifest reads what the file says of itself; ErrOther when it says nothing.
func (a *Archive) manifest() (manifest, error) {
	var m manifest
	f, err := a.zip.Open(manifestFile)
	if errors.Is(err, chatexport.ErrNoFile) {
		return m, ErrOther
	}
	if err != nil {
		return m, err //nolint:wrapcheck // it says all there is to say
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxLine))
	if err != nil {
		return m, a.zip.About(manifestFile, err) //nolint:wrapcheck // it says all there is to say
	}
	if json.Unmarshal(text, &m) != nil || m.Format != format {
		return m, ErrOther
	}
	if m.Version != version {
		return m, fault.New(fault.Invalid, "the export is of version %d of its format, and this server reads version %d", m.Version, version)
	}
	return m, nil
}

// check reads all of it.
func (a *Archive) check() error {
	defaults := 0
	for b, err := range a.Buckets() {
		switch {
		case err != nil:
			return err
		case a.buckets[b.ID]:
			return fault.New(fault.Invalid, "%s: there are two buckets of the id %d", bucketsFile, b.ID)
		case b.Default:
			defaults++
		}
		a.buckets[b.ID] = true
	}
	if defaults > 1 || defaults == 0 && a.Counts.Memories > 0 {
		return fault.New(fault.Invalid, "%s: one bucket must be the default one, not %d", bucketsFile, defaults)
	}
	for h, err := range a.MemoryHistories() {
		if err != nil {
			return err
		}
		if !a.buckets[h.Bucket] {
			return fault.New(fault.Invalid, "%s: memory %s is in bucket %d, which is not in %s", memoriesFile, h.ID, h.Bucket, bucketsFile)
		}
	}
	for _, err := range a.Transcripts() {
		if err != nil {
			return err
		}
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
