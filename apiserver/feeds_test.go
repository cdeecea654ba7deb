package apiserver

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// countingImports counts how often an import is read.
type countingImports struct {
	importer.Store
	reads atomic.Int64
}

func (c *countingImports) GetImport(ctx context.Context, scope tenant.Scope, id string) (importer.Import, error) {
	c.reads.Add(1)
	return c.Store.GetImport(ctx, scope, id)
}

// All streams of an import share one poll of the database, and a client that does not
// read its stream does not delay the others.
func TestStreamsShareOnePoll(t *testing.T) {
	t.Parallel()
	var store countingImports
	h := newTestServer(t, func(c *Config) {
		store.Store = c.Imports.Imports
		c.Imports.Imports = &store
	})
	id := h.send(t, h.alice, nil, field{"file", "[]"}).json(t)["importId"].(string)
	const streams = 8
	readers := make([]*bufio.Reader, streams)
	begin := time.Now()
	h.follow(t.Context(), t, h.alice, id, "") // is never read
	for i := range readers {
		readers[i] = bufio.NewReader(h.follow(t.Context(), t, h.alice, id, "").Body)
		event(t, readers[i])
	}
	for version := int64(2); version < 6; version++ {
		h.stores.change(id, func(i *importer.Import) { i.Version = version })
		for _, r := range readers {
			if got, _ := event(t, r); got != strconv.FormatInt(version, 10) {
				t.Errorf("event %s, want %d", got, version)
			}
		}
	}
	opening := int64(streams + 1)
	if polls, most := store.reads.Load()-opening, int64(time.Since(begin)/importPoll)+1; polls > most {
		t.Errorf("%d streams polled %d times in %s, want at most %d", streams, polls, time.Since(begin), most)
	}
}

// A user with too many streams gets 429 until one ends; other users are not affected.
func TestStreamsOfAUserAreLimited(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	id := h.send(t, h.alice, nil, field{"file", "[]"}).json(t)["importId"].(string)
	other := h.send(t, h.bob, nil, field{"file", "[]"}).json(t)["importId"].(string)
	ctx, cancel := context.WithCancel(t.Context())
	event(t, bufio.NewReader(h.follow(ctx, t, h.alice, id, "").Body))
	for range maxStreams - 1 {
		event(t, bufio.NewReader(h.follow(t.Context(), t, h.alice, id, "").Body))
	}
	got := h.call(t, h.alice, "GET", "/api/chat-history/imports/"+id+"/events", "")
	if got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") != "15" {
		t.Errorf("one more stream: %d, Retry-After %q; want 429 and 15", got.status, got.header.Get("Retry-After"))
	}
	if want := `"error":"too many event streams are open (limit 10 per user); close one, or retry later"`; !strings.Contains(got.body, want) {
		t.Errorf("one more stream: %s, want %s", got.body, want)
	}
	event(t, bufio.NewReader(h.follow(t.Context(), t, h.bob, other, "").Body))
	cancel()
	version := int64(1)
	h.eventually(t, func() string {
		version++ // the server notices the end when it sends an event
		h.stores.change(id, func(i *importer.Import) { i.Version = version })
		if again := h.follow(t.Context(), t, h.alice, id, ""); again.StatusCode != http.StatusOK {
			return fmt.Sprintf("after a stream ended: %d", again.StatusCode)
		}
		return ""
	})
}
