package apiserver

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// maxUserRequests is the number of requests of a user that a replica works on at a time, so that no user holds
	// all connections to PostgreSQL or the embedding model. maxUserBulk is that of requests with a large body.
	maxUserRequests = 8
	maxUserBulk     = 2
	// bulkBody is the size above which a body is large, bytes.
	bulkBody = 64 << 10
	// maxWaiting and turnTimeout limit how many more requests of a user wait for their turn, and how long.
	maxWaiting  = 64
	turnTimeout = 10 * time.Second
)

// turnKey is a user, or a user of an application.
type turnKey struct {
	tenant.Scope

	acting string
}

// turns limits the concurrent requests of each user. Others wait in the order of their arrival.
type turns struct {
	limit int

	mu    sync.Mutex
	users map[turnKey]*userTurns
}

type userTurns struct {
	running int
	waiting []chan struct{}
}

func newTurns(limit int) *turns { return &turns{limit: limit, users: map[turnKey]*userTurns{}} }

// take waits for a turn and returns the function that ends it. It returns RateLimited if that takes too long.
func (t *turns) take(ctx context.Context, who turnKey) (end func(), err error) {
	turn, err := t.enqueue(who)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, turnTimeout)
	defer cancel()
	select {
	case <-turn:
		return func() { t.end(who) }, nil
	case <-ctx.Done():
		t.leave(who, turn)
		return nil, errBusy
	}
}

var errBusy error = &fault.Error{Kind: fault.RateLimited, RetryAfter: 5 * time.Second,
	Message: "too many requests of this user at the same time; wait for responses before sending more"}

// enqueue returns a channel that is closed when it is the request's turn.
func (t *turns) enqueue(who turnKey) (chan struct{}, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.users[who]
	if u == nil {
		u = &userTurns{}
		t.users[who] = u
	}
	turn := make(chan struct{})
	switch {
	case u.running < t.limit:
		u.running++
		close(turn)
	case len(u.waiting) >= maxWaiting:
		return nil, errBusy
	default:
		u.waiting = append(u.waiting, turn)
	}
	return turn, nil
}

// end gives the turn to the next request.
func (t *turns) end(who turnKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.users[who]
	if len(u.waiting) > 0 {
		close(u.waiting[0])
		u.waiting = slices.Delete(u.waiting, 0, 1)
		return
	}
	if u.running--; u.running == 0 {
		delete(t.users, who)
	}
}

// leave gives up waiting. The turn may have come in the meantime.
func (t *turns) leave(who turnKey, turn chan struct{}) {
	t.mu.Lock()
	u := t.users[who]
	i := slices.Index(u.waiting, turn)
	if i >= 0 {
		u.waiting = slices.Delete(u.waiting, i, i+1)
	}
	t.mu.Unlock()
	if i < 0 {
		t.end(who)
	}
}

// work is what a request holds while the server works on it.
type work struct {
	bulk bool
	ends []func()
}

func (w *work) end() {
	for _, end := range w.ends {
		end()
	}
}

type workKey struct{}

// isBulk reports whether a request has a large body, or one of unknown size. Uploads are not: they are only stored.
func isBulk(c *fiber.Ctx) bool {
	n := c.Request().Header.ContentLength()
	upload := strings.HasPrefix(c.Get(fiber.HeaderContentType), fiber.MIMEMultipartForm)
	return (n > bulkBody || n == -1) && !upload
}

// begin waits until the server may work on a request of an authenticated user, and counts its memory for the user.
func (s *Server) begin(ctx context.Context, who tenant.Identity) error {
	w, ok := ctx.Value(workKey{}).(*work)
	if !ok {
		return nil
	}
	tenant.MemoryUseOf(ctx).SetUser(who.Scope)
	user, _ := ctx.Value(actingKey{}).(string)
	limits := []*turns{s.turns}
	if w.bulk {
		limits = []*turns{s.bulkTurns, s.turns}
	}
	for _, t := range limits {
		end, err := t.take(ctx, turnKey{who.Scope, user})
		if err != nil {
			return err
		}
		w.ends = append(w.ends, end)
	}
	return nil
}
