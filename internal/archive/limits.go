package archive

import (
	"cmp"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/chatexport"
	"github.com/mnemo-dev/mnemo/internal/fault"
)

// Limits bound what a file may ask of us. A field that is 0 takes its default.
type Limits struct {
	Zip chatexport.Limits // of these, those of whole zips
	// Held is how many bytes the messages of a conversation, or the versions
	// of a memory, may have together: they are held at a time. Default 64 MiB.
	Held int64
	// Buckets is how many buckets a file may hold. Default 10,000.
	Buckets int64
	// Conversations is how many conversations a file may hold. Default 250,000.
	Conversations int64
}

// maxLine is the longest line of files whose records have a bounded text, bytes.
const maxLine = 1 << 20

func (l Limits) withDefaults() Limits {
	l.Held = cmp.Or(l.Held, 64<<20)
	l.Buckets = cmp.Or(l.Buckets, 10_000)
	l.Conversations = cmp.Or(l.Conversations, 250_000)
	return l
}

// check holds what a file says of itself to the limits.
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

// line is the longest line of a file, bytes.
func (l Limits) line(file string) int {
	if file == messagesFile {
		return int(l.Held)
	}
	return maxLine
}
