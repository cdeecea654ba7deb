package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// load is a set of clients, each of which repeatedly stores a memory and searches for it.
type load struct {
	token string
	// sent counts requests, retried their retries, failed those that failed after all
	// retries or must not be retried, and stored the stored memories.
	sent, retried, failed, stored atomic.Int64

	mu      sync.Mutex
	reasons []string
	cancel  context.CancelFunc
	clients sync.WaitGroup
}

// loadInterval is the time between two memories of a client. Without it, the clients would use the processor that the pods need.
const loadInterval = 50 * time.Millisecond

// startLoad starts clients that use the given token. Half of them keep their connection,
// like an application; the others open one for each request, like a command line.
func startLoad(t *testing.T, token string) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{token: token, cancel: cancel}
	for i := range 4 {
		transport := &http.Transport{DisableKeepAlives: i%2 == 1}
		l.clients.Go(func() {
			defer transport.CloseIdleConnections()
			for n := 0; ctx.Err() == nil; n++ {
				<-time.After(loadInterval)
				l.storeAndFind(&http.Client{Transport: transport, Timeout: 15 * time.Second}, fmt.Sprintf("client %d, memory %d of %s", i, n, t.Name()))
			}
		})
	}
	t.Cleanup(cancel)
	return l
}

// storeAndFind stores a memory and searches for it. It completes even when the load stops.
func (l *load) storeAndFind(c *http.Client, text string) {
	body, _ := json.Marshal(map[string]string{"text": text}) // cannot fail for a map of strings
	if _, ok := l.send(c, http.MethodPost, "/api/memory", text, body); !ok {
		return
	}
	l.stored.Add(1)
	found, ok := l.send(c, http.MethodGet, "/api/v2/memory?count=5&query="+url.QueryEscape(text), "", nil)
	if ok && !bytes.Contains(found, []byte(text)) {
		l.fail(fmt.Sprintf("%q is stored but not found: %.300s", text, found))
	}
}

// send sends a request and retries it where a client may: after a 429 or 503 response, and
// after a broken connection, which is safe for writes because of the idempotency key.
func (l *load) send(c *http.Client, method, path, key string, body []byte) ([]byte, bool) {
	l.sent.Add(1)
	var last string
	for try := range 8 {
		if try > 0 {
			l.retried.Add(1)
			<-time.After(time.Duration(try) * 250 * time.Millisecond)
		}
		answer, status, err := l.do(c, method, path, key, body)
		switch {
		case err != nil:
			last = err.Error()
		case status == http.StatusOK:
			return answer, true
		case status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests:
			last = fmt.Sprintf("%d %s", status, answer)
		default:
			l.fail(fmt.Sprintf("%s %s: %d %s", method, path, status, answer))
			return nil, false
		}
	}
	l.fail(fmt.Sprintf("%s %s: 8 attempts failed, the last with %s", method, path, last))
	return nil, false
}

func (l *load) do(c *http.Client, method, path, key string, body []byte) ([]byte, int, error) {
	req, err := http.NewRequestWithContext(context.Background(), method, cluster.env["MNEMO_URL"]+path, bytes.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	req.Header.Set("Authorization", "Bearer "+l.token)
	if key != "" {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := c.Do(req)
	if err != nil {
		return nil, 0, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	return answer, res.StatusCode, err
}

func (l *load) fail(reason string) {
	l.failed.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.reasons) < 10 {
		l.reasons = append(l.reasons, reason)
	}
}

// stop stops the load and fails the test if a request failed or too few were sent.
func (l *load) stop(t *testing.T, step string) {
	t.Helper()
	l.cancel()
	l.clients.Wait()
	t.Logf("%s: %d requests sent, %d failed, %d retried", step, l.sent.Load(), l.failed.Load(), l.retried.Load())
	if l.failed.Load() > 0 {
		t.Errorf("%s: %d of %d requests failed, want none:\n%q", step, l.failed.Load(), l.sent.Load(), l.reasons)
	}
	if l.sent.Load() < 40 {
		t.Errorf("%s: %d requests, want at least 40", step, l.sent.Load())
	}
}
