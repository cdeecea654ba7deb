package chatexport

import (
	"io"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// Limits bound what a file may ask of us. A field that is 0 takes its default.
type Limits struct {
	// Conversation is how many bytes of JSON one conversation may take. The
	// worst one is held twice for a moment. Default 32 MiB.
	Conversation int64
	// Conversations is how many conversations a file may hold. Default 250,000.
	Conversations int
	// Messages is how many messages one conversation may hold, those of
	// abandoned branches included. Default 100,000.
	Messages int
	// Depth is how deep the JSON of a conversation may nest. Default 256.
	Depth int
	// Zips is how many zips may be inside one another. Default 4.
	Zips int
	// Entries is how many files all the zips may hold. Default 100,000.
	Entries int
	// Directory is how many bytes a zip's list of files may take. Default 8 MiB.
	Directory int64
	// Inflated is how many bytes one reading of the file may inflate to.
	// Default 32 GiB.
	Inflated int64
	// Ratio is how many times its own size a file may inflate to, once it has
	// inflated to 256 MiB. Default 100.
	Ratio int64
}

// freely is what any file may inflate to, whatever its ratio.
const freely = 256 << 20

// withDefaults returns the limits with every 0 replaced.
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

// budget is what one reading of a file may still inflate to.
type budget struct {
	left  int64
	total int64
}

func (l Limits) budget(size int64) *budget {
	total := min(l.Inflated, max(freely, satMul(size, l.Ratio)))
	return &budget{left: total, total: total}
}

func satMul(a, b int64) int64 {
	if a > 0 && b > (1<<62)/a {
		return 1 << 62
	}
	return a * b
}

// charge takes n inflated bytes of the file named off the budget.
func (b *budget) charge(name string, n int) error {
	if b.left -= int64(n); b.left >= 0 {
		return nil
	}
	return &limitError{fault.New(fault.Invalid,
		"%s: the file inflates to more than %d MiB, which looks like a zip bomb", name, b.total>>20)}
}

// limitError is a limit of the whole file that was passed: it is never put
// down to one inner archive alone.
type limitError struct{ err error }

func (e *limitError) Error() string { return e.err.Error() }
func (e *limitError) Unwrap() error { return e.err }

// metered charges what is read through it.
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
