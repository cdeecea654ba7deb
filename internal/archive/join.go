package archive

import (
	"crypto/sha256"
	"iter"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	memories "github.com/mnemo-dev/mnemo/internal/memory"
)

// recordSize is the approximate overhead of a version or message in bytes.
const recordSize = memories.VersionSize

// MemoryHistory is a memory with its earlier versions, oldest first.
type MemoryHistory struct {
	account.Memory
	Earlier []account.Version
}

// Transcript is a conversation with its messages.
type Transcript struct {
	chat.Conversation
	Messages []chat.Message
}

// MemoryHistories yields the memories with their versions.
func (a *Archive) MemoryHistories() iter.Seq2[MemoryHistory, error] {
	return func(yield func(MemoryHistory, error) bool) {
		versions := follow(a.Versions())
		defer versions.stop()
		for m, err := range a.Memories() {
			h := MemoryHistory{Memory: m}
			if err == nil {
				h.Earlier, err = a.earlier(m, versions)
			}
			if !yield(h, err) || err != nil {
				return
			}
		}
		versions.discard(a.ofOmittedMemory)
		if err := versions.end(versionsFile, memoriesFile); err != nil {
			yield(MemoryHistory{}, err)
		}
	}
}

// earlier reads the versions of a memory.
func (a *Archive) earlier(m account.Memory, from *follower[account.Version]) ([]account.Version, error) {
	var out []account.Version
	held, last := int64(0), 0
	from.discard(a.ofOmittedMemory)
	for from.hasNext && from.next.Memory == m.ID {
		v := from.next
		if v.Version <= last || v.Version >= m.Version {
			return nil, fault.New(fault.Invalid, "%s: version %d of memory %s is out of order", versionsFile, v.Version, m.ID)
		}
		if held += recordSize + int64(len(v.Text)); held > a.limits.Held {
			return nil, fault.New(fault.Invalid, "%s: the versions of memory %s exceed %d MiB", versionsFile, m.ID, a.limits.Held>>20)
		}
		last = v.Version
		out = append(out, v)
		from.step()
	}
	return out, from.err
}

// Transcripts yields the conversations with their messages.
func (a *Archive) Transcripts() iter.Seq2[Transcript, error] {
	return func(yield func(Transcript, error) bool) {
		messages := follow(a.Messages())
		defer messages.stop()
		last, seen := "", make(map[[sha256.Size / 2]byte]bool)
		for c, err := range a.Conversations() {
			t := Transcript{Conversation: c}
			if err == nil && c.ID <= last {
				err = fault.New(fault.Invalid, "%s: conversation %s is duplicated or out of order", conversationsFile, c.ID)
			}
			name := sha256.Sum256([]byte(c.Platform + "\x00" + c.ExternalID))
			key := [sha256.Size / 2]byte(name[:]) // collisions are negligible
			if err == nil && seen[key] {
				err = fault.New(fault.Invalid, "%s: conversation %s has the same platform and platformConversationId as another one", conversationsFile, c.ID)
			}
			seen[key] = true
			if last = c.ID; err == nil {
				t.Messages, err = a.messages(c, messages)
			}
			if !yield(t, err) || err != nil {
				return
			}
		}
		messages.discard(a.ofOmittedConversation)
		if err := messages.end(messagesFile, conversationsFile); err != nil {
			yield(Transcript{}, err)
		}
	}
}

// messages reads the messages of a conversation.
func (a *Archive) messages(c chat.Conversation, from *follower[account.Message]) ([]chat.Message, error) {
	var out []chat.Message
	held, last, seen := int64(0), -1, make(map[string]bool)
	from.discard(a.ofOmittedConversation)
	for from.hasNext && from.next.Conversation == c.ID {
		m := from.next.Message
		if !a.follows(m.Index, last) || seen[m.ExternalID] {
			return nil, fault.New(fault.Invalid, "%s: message %d of conversation %s is duplicated or out of order", messagesFile, m.Index, c.ID)
		}
		if held += recordSize + int64(len(m.Text)+len(m.ExternalID)); held > a.limits.Held {
			return nil, fault.New(fault.Invalid, "%s: the messages of conversation %s exceed %d MiB", messagesFile, c.ID, a.limits.Held>>20)
		}
		seen[m.ExternalID], last = true, m.Index
		m.Index = len(out)
		out = append(out, m)
		from.step()
	}
	if from.err == nil && len(out) != c.MessageCount && len(a.Invalid) == 0 {
		return nil, fault.New(fault.Invalid, "%s: conversation %s has %d messages, but %s states %d", messagesFile, c.ID, len(out), conversationsFile, c.MessageCount)
	}
	return out, from.err
}

// follows reports whether a message may have the index after that of the previous one. Omitted messages leave gaps.
func (a *Archive) follows(index, last int) bool {
	return index == last+1 || len(a.Invalid) > 0 && index > last
}

func (a *Archive) ofOmittedMemory(v account.Version) bool { return a.omitted[memoriesFile+v.Memory] }

func (a *Archive) ofOmittedConversation(m account.Message) bool {
	return a.omitted[conversationsFile+m.Conversation]
}

// follower reads a sequence in step with another one.
type follower[T any] struct {
	next    T
	hasNext bool
	err     error
	pull    func() (T, error, bool)
	stop    func()
}

func follow[T any](all iter.Seq2[T, error]) *follower[T] {
	f := &follower[T]{}
	f.pull, f.stop = iter.Pull2(all)
	f.step()
	return f
}

func (f *follower[T]) step() {
	f.next, f.err, f.hasNext = f.pull()
	f.hasNext = f.hasNext && f.err == nil
}

// discard omits the next records that drop returns true for.
func (f *follower[T]) discard(drop func(T) bool) {
	for f.hasNext && drop(f.next) {
		f.step()
	}
}

// end returns an error if records remain after the other sequence ended.
func (f *follower[T]) end(file, other string) error {
	if f.err == nil && f.hasNext {
		return fault.New(fault.Invalid, "%s: records without an owner in %s", file, other)
	}
	return f.err
}
