package chatexport

import (
	"io"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// Limits limit the resources that a file may use. 0 selects the default.
type Limits struct {
	// Conversation is the maximum size of a conversation, in bytes of JSON. It is
	// briefly in memory twice. Default 32 MiB.
	Conversation int64
	// Conversations is the maximum number of conversations. Default 250,000.
	Conversations int
	// Messages is the maximum number of messages of a conversation, including
	// abandoned branches. Default 100,000.
	Messages int
	// Depth is the maximum nesting of the JSON of a conversation. Default 256.
	Depth int
	// Zips is the maximum nesting of zips. Default 4.
	Zips int
	// Entries is the maximum number of files in all zips. Default 100,000.
	Entries int
	// Directory is the maximum size of a zip's file list, in bytes. Default 8 MiB.
	Directory int64
	// Inflated is the maximum number of decompressed bytes per pass over the file.
	// Default 32 GiB.
	Inflated int64
	// Ratio is the maximum compression ratio, which applies beyond 256 MiB of
	// decompressed data. Default 100.
	Ratio int64
}

// ratioExempt is the decompressed size up to which the ratio is not limited.
const ratioExempt = 256 << 20

// withDefaults replaces zero fields by their defaults.
func (l Limits) withDefaults() Limits {
	l.Conversation = either(l.Conversation, 32<<20)
	l.Conversations = either(l.Conversations, 250_000)
	l.Messages = either(l.Messages, 100_000)
	l.Depth = either(l.Depth, 256)
	l.Zips = either(l.Zips, 4)
	l.Entries = either(l.Entries, 100_000)
	l.Directory = either(l.Directory, 8<<20)
	l.Inflated = either(l.Inflated, 32<<30)
	l.Ratio = either(l.Ratio, 100)
	return l
}

func either[T int | int64](n, standard T) T {
	if n == 0 {
		return standard
	}
	return n
}

// budget is the remaining number of decompressed bytes of one pass.
type budget struct {
	left  int64
	total int64
}

func (l Limits) budget(size int64) *budget {
	total := min(l.Inflated, max(ratioExempt, satMul(size, l.Ratio)))
	return &budget{left: total, total: total}
}

func satMul(a, b int64) int64 {
	if a > 0 && b > (1<<62)/a {
		return 1 << 62
	}
	return a * b
}

// charge subtracts n decompressed bytes of the named file from the budget.
func (b *budget) charge(name string, n int) error {
	if b.left -= int64(n); b.left >= 0 {
		return nil
	}
	return &limitError{fault.New(fault.Invalid,
		"%s: the file decompresses to more than %d MiB, which looks like a zip bomb", name, b.total>>20)}
}

// limitError is an exceeded limit of the whole file. It is never attributed to a
// nested archive alone.
type limitError struct{ err error }

func (e *limitError) Error() string { return e.err.Error() }
func (e *limitError) Unwrap() error { return e.err }

// metered charges its reads to the budget.
type metered struct {
	r      io.Reader
	name   string
	budget *budget
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	if over := m.budget.charge(m.name, n); over != nil {
		return 0, over
	}
	return n, err
}
