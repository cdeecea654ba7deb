package archive

import (
	"cmp"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/chatexport"
	"github.com/mnemo-dev/mnemo/internal/fault"
	memories "github.com/mnemo-dev/mnemo/internal/memory"
)

// Limits bounds the resources that a file can use. Fields that are 0 use the default.
type Limits struct {
	Zip chatexport.Limits // only the limits of zips are used
	// Held is the maximum size in bytes of the messages of a conversation, or of the
	// versions of a memory, which are held in memory together. Default 64 MiB, which nothing exceeds that the
	// service has stored: chat.MaxConversation, memory.MaxHistory.
	Held int64
	// Buckets is the maximum number of buckets. Default 10,000.
	Buckets int64
	// Conversations is the maximum number of conversations. Default 250,000.
	Conversations int64
	// SkipInvalid omits up to 1,000 invalid lines instead of rejecting the file. With a memory or conversation, its
	// versions or messages are omitted. The memories of an omitted bucket remain.
	SkipInvalid bool
}

// maxLine is the maximum line length in bytes, except in the file of messages.
const maxLine = 1 << 20

func (l Limits) withDefaults() Limits {
	l.Held = cmp.Or(l.Held, memories.MaxHistory)
	l.Buckets = cmp.Or(l.Buckets, memories.MaxBuckets)
	l.Conversations = cmp.Or(l.Conversations, 250_000)
	return l
}

// check compares the counts in the manifest with the limits.
func (l Limits) check(c account.Counts) error {
	var f fault.Fields
	for _, n := range []struct {
		file       string
		lines, may int64
	}{
		{bucketsFile, c.Buckets, l.Buckets}, {memoriesFile, c.Memories, 1 << 40}, {versionsFile, c.Versions, 1 << 40},
		{conversationsFile, c.Conversations, l.Conversations}, {messagesFile, c.Messages, 1 << 40},
	} {
		if n.lines < 0 || n.lines > n.may {
			f.Add(manifestFile+":", "%s may have up to %d lines, not %d", n.file, n.may, n.lines)
		}
	}
	return f.Err()
}

// line returns the maximum line length of a file in bytes.
func (l Limits) line(file string) int {
	if file == messagesFile {
		return int(l.Held) + maxLine // JSON needs up to twice the size of the text, for chat.MaxConversation, and the other members
	}
	return maxLine
}
