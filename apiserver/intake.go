package apiserver

import (
	"io"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// maxIntake and maxUserIntake are the most bytes of JSON bodies in memory, of all
	// requests and of one user's. Decoding needs up to five times as much. A user's
	// share has room for one body of the largest size.
	maxIntake     = 128 << 20
	maxUserIntake = 64 << 20
	// maxValues is the most values of a JSON body. A value of two bytes, such as {},
	// needs a hundred bytes of memory. A conversation within the token limit has fewer.
	maxValues = 500_000
)

// intake limits the bytes of JSON bodies that are in memory at a time.
type intake struct {
	mu    sync.Mutex
	total int64
	users map[tenant.Scope]int64
}

func newIntake() *intake { return &intake{users: map[tenant.Scope]int64{}} }

// add counts received bytes of a user.
func (in *intake) add(who tenant.Scope, n int64) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case in.users[who]+n > maxUserIntake:
		return &fault.Error{Kind: fault.RateLimited, RetryAfter: time.Second,
			Message: "too many large requests at the same time; try again when they have finished"}
	case in.total+n > maxIntake:
		return &fault.Error{Kind: fault.Unavailable, RetryAfter: time.Second, Message: "the server is receiving too much data; try again"}
	}
	in.total += n
	in.users[who] += n
	return nil
}

func (in *intake) remove(who tenant.Scope, n int64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.total -= n
	if in.users[who] -= n; in.users[who] == 0 {
		delete(in.users, who)
	}
}

// intakeReader counts what is read of a body. It fails at a limit.
type intakeReader struct {
	io.Reader

	intake *intake
	who    tenant.Scope
	read   int64
}

// Read reads and counts.
func (r *intakeReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if n == 0 {
		return n, err //nolint:wrapcheck // compared by the reader
	}
	if err := r.intake.add(r.who, int64(n)); err != nil {
		return 0, err
	}
	r.read += int64(n)
	return n, err //nolint:wrapcheck // compared by the reader
}

// countBody counts what is read of a request's body, until the returned function is called
// when the request is finished.
func (s *Server) countBody(c *fiber.Ctx, who tenant.Scope) (release func()) {
	b := requestBody(c)
	if b == nil {
		return func() {}
	}
	counted := &intakeReader{Reader: b.stream, intake: s.intake, who: who}
	b.stream = counted
	return counted.release
}

// release returns the counted bytes when the request is finished.
func (r *intakeReader) release() { r.intake.remove(r.who, r.read) }

// hasTooManyValues reports whether JSON has more than maxValues values. It counts the
// starts of objects and arrays, and commas.
func hasTooManyValues(data []byte) bool {
	values, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			quoted = !quoted
		case '\\':
			i++ // only valid inside a string
		case '{', '[', ',':
			if !quoted {
				values++
			}
		}
	}
	return values > maxValues
}
