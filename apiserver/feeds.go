package apiserver

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// maxStreams is the number of event streams that a user can have open on a replica.
	maxStreams = 10
	// importPoll is the polling interval during an import, and indexingPoll the
	// interval while only embeddings are missing. The state is in PostgreSQL, so
	// any replica can serve the events.
	importPoll   = 500 * time.Millisecond
	indexingPoll = 2 * time.Second
)

// feeds polls each import that clients follow once for all of them.
type feeds struct {
	imports *importer.Service

	mu      sync.Mutex
	feeds   map[feedKey]*feed
	streams map[tenant.Scope]int
}

type feedKey struct {
	scope tenant.Scope
	id    string
}

// feed is the status of an import that is followed. feeds.mu protects its fields.
type feed struct {
	key       feedKey
	current   importer.Import
	deleted   bool
	changed   chan struct{} // closed at the next change
	followers int
	stop      context.CancelFunc // of the polling
}

func newFeeds(imports *importer.Service) *feeds {
	return &feeds{imports: imports, feeds: map[feedKey]*feed{}, streams: map[tenant.Scope]int{}}
}

// join opens a stream of an import, whose status the caller has just read. RateLimited
// if the user has too many. The caller must leave.
func (x *feeds) join(who tenant.Identity, i importer.Import) (*feed, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.streams[who.Scope] >= maxStreams {
		// Disconnected clients are detected by the next heartbeat.
		return nil, &fault.Error{Kind: fault.RateLimited, RetryAfter: heartbeat,
			Message: fmt.Sprintf("too many event streams are open (limit %d per user); close one, or retry later", maxStreams)}
	}
	x.streams[who.Scope]++
	key := feedKey{who.Scope, i.ID}
	f := x.feeds[key]
	if f == nil {
		ctx, cancel := context.WithCancel(context.Background())
		f = &feed{key: key, current: i, changed: make(chan struct{}), stop: cancel}
		x.feeds[key] = f
		go x.poll(ctx, who, f)
	}
	f.followers++
	if i.Version > f.current.Version {
		f.set(i, false)
	}
	return f, nil
}

// leave closes a stream. The last one ends the polling.
func (x *feeds) leave(f *feed) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.streams[f.key.scope]--; x.streams[f.key.scope] == 0 {
		delete(x.streams, f.key.scope)
	}
	if f.followers--; f.followers == 0 {
		f.stop()
		delete(x.feeds, f.key)
	}
}

// state returns the status of the import, whether the import was deleted, and a channel
// that is closed at the next change.
func (x *feeds) state(f *feed) (current importer.Import, deleted bool, changed <-chan struct{}) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return f.current, f.deleted, f.changed
}

// set publishes a status. The caller holds feeds.mu.
func (f *feed) set(i importer.Import, deleted bool) {
	f.current, f.deleted = i, deleted
	close(f.changed)
	f.changed = make(chan struct{})
}

// poll reads the status of an import until nobody follows it or it does not change
// anymore. While the store is unavailable, the status stays as it is.
func (x *feeds) poll(ctx context.Context, who tenant.Identity, f *feed) {
	for {
		current, deleted, _ := x.state(f)
		if deleted || current.Settled() {
			return
		}
		pause := importPoll
		if current.Status == importer.Done {
			pause = indexingPoll
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		x.refresh(ctx, who, f)
	}
}

func (x *feeds) refresh(ctx context.Context, who tenant.Identity, f *feed) {
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	i, err := x.imports.Get(ctx, who, f.key.id)
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case fault.Is(err, fault.NotFound):
		f.set(f.current, true)
	case err == nil && i.Version > f.current.Version:
		f.set(i, false)
	}
}
