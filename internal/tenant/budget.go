package tenant

import (
	"context"
	"sync"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// FreeMemory is the memory of a request that a Budget does not count, in bytes, so that requests of usual
// size are served while others use the whole budget.
const FreeMemory = 16 << 10

// Budget limits the memory of requests and responses, in total and for each user. It is safe for concurrent use.
type Budget struct {
	total, perUser int64 // bytes

	mu    sync.Mutex
	used  int64
	users map[Scope]int64
}

// NewBudget returns a Budget of so many bytes.
func NewBudget(total, perUser int64) *Budget {
	return &Budget{total: total, perUser: perUser, users: map[Scope]int64{}}
}

// Used returns the counted bytes.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// add counts n more bytes of a user, within the limits unless forced.
func (b *Budget) add(who Scope, n int64, forced bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case n <= 0 || forced:
	case b.users[who]+n > b.perUser:
		return &fault.Error{Kind: fault.RateLimited, RetryAfter: time.Second,
			Message: "too many large requests at the same time; try again when they have finished"}
	case b.used+n > b.total:
		return &fault.Error{Kind: fault.Unavailable, RetryAfter: time.Second,
			Message: "the server is transferring too much data; try again"}
	}
	b.used += n
	if b.users[who] += n; b.users[who] == 0 {
		delete(b.users, who)
	}
	return nil
}

// MemoryUse is the memory of one request.
type MemoryUse struct {
	budget *Budget

	mu      sync.Mutex
	who     Scope
	size    int64
	counted int64 // of size, beyond FreeMemory
}

// NewMemoryUse returns the usage of a request. Release must be called when it is finished.
func (b *Budget) NewMemoryUse() *MemoryUse { return &MemoryUse{budget: b} }

// SetUser sets whose share of the budget is used from then on.
func (u *MemoryUse) SetUser(who Scope) {
	u.mu.Lock()
	defer u.mu.Unlock()
	_ = u.budget.add(u.who, -u.counted, true)
	_ = u.budget.add(who, u.counted, true)
	u.who = who
}

// Anonymous reports whether no user was set.
func (u *MemoryUse) Anonymous() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.who == Scope{}
}

// Add counts n more bytes. If they exceed the user's share of the budget, it returns RateLimited, and if they exceed the
// budget, Unavailable. Then it counts nothing.
func (u *MemoryUse) Add(n int64) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.set(u.size+n, false)
}

// Set replaces the counted bytes by n, within the limits unless forced.
func (u *MemoryUse) Set(n int64, forced bool) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.set(n, forced)
}

func (u *MemoryUse) set(size int64, forced bool) error {
	counted := max(size-FreeMemory, 0)
	if err := u.budget.add(u.who, counted-u.counted, forced); err != nil {
		return err
	}
	u.size, u.counted = size, counted
	return nil
}

// Release returns the bytes to the budget.
func (u *MemoryUse) Release() { _ = u.Set(0, true) }

type memoryUseKey struct{}

// WithMemoryUse returns a context of a request whose memory is counted.
func WithMemoryUse(ctx context.Context, u *MemoryUse) context.Context {
	return context.WithValue(ctx, memoryUseKey{}, u)
}

// ReserveMemory counts n bytes that are read next for a request. Jobs have no budget.
func ReserveMemory(ctx context.Context, n int64) error {
	if u, ok := ctx.Value(memoryUseKey{}).(*MemoryUse); ok {
		return u.Add(n)
	}
	return nil
}

// MemoryUseOf returns the usage of a request, or nil.
func MemoryUseOf(ctx context.Context) *MemoryUse {
	u, _ := ctx.Value(memoryUseKey{}).(*MemoryUse)
	return u
}
