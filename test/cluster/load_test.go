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

// load is what several clients ask while something else happens: each stores a
// memory and looks for it, again and again.
type load struct {
	token string
	// sent counts requests, retried those asked again, failed those that no
	// retry helped or that may not be retried; stored are memories taken.
	sent, retried, failed, stored atomic.Int64

	mu      sync.Mutex
	why     []string
	cancel  context.CancelFunc
	clients sync.WaitGroup
}

// startLoad begins asking as the user of a token. Half of the clients keep
// their connection, as an application does, half make one for each request, as
// a command line does.
func startLoad(t *testing.T, token string) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{token: token, cancel: cancel}
	for i := range 4 {
		transport := &http.Transport{DisableKeepAlives: i%2 == 1}
		l.clients.Go(func() {
			defer transport.CloseIdleConnections()
			for n := 0; ctx.Err() == nil; n++ {
				l.turn(&http.Client{Transport: transport, Timeout: 15 * time.Second}, fmt.Sprintf("client %d, memory %d of %s", i, n, t.Name()))
			}
		})
	}
	t.Cleanup(cancel)
	return l
}

// turn stores a memory and searches for it. A turn that has begun completes even when the
// load stops.
func (l *load) turn(c *http.Client, text string) {
	body, _ := json.Marshal(map[string]string{"text": text}) // a map of strings
	if _, ok := l.ask(c, http.MethodPost, "/api/memory", text, body); !ok {
		return
	}
	l.stored.Add(1)
	found, ok := l.ask(c, http.MethodGet, "/api/v2/memory?count=5&query="+url.QueryEscape(text), "", nil)
	if ok && !bytes.Contains(found, []byte(text)) {
		l.fail(fmt.Sprintf("%q was stored and is not found: %.300s", text, found))
	}
}

// ask sends a request, and sends it again where a client may: after an answer
// that says so and after a broken connection, which an idempotency key makes
// safe for what writes.
func (l *load) ask(c *http.Client, method, path, key string, body []byte) ([]byte, bool) {
	l.sent.Add(1)
	var last string
	for try := range 8 {
		if try > 0 {
			l.retried.Add(1)
			<-time.After(time.Duration(try) * 250 * time.Millisecond)
		}
		answer, status, err := l.once(c, method, path, key, body)
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
	l.fail(fmt.Sprintf("%s %s, tried 8 times: %s", method, path, last))
	return nil, false
}

func (l *load) once(c *http.Client, method, path, key string, body []byte) ([]byte, int, error) {
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

func (l *load) fail(why string) {
	l.failed.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.why) < 10 {
		l.why = append(l.why, why)
	}
}

// stop ends the load and fails the test if anything failed or the load was
// none.
func (l *load) stop(t *testing.T, what string) {
	t.Helper()
	l.cancel()
	l.clients.Wait()
	t.Logf("%s: %d requests sent, %d failed, %d retried", what, l.sent.Load(), l.failed.Load(), l.retried.Load())
	if l.failed.Load() > 0 {
		t.Errorf("%s: %d of %d requests failed, want none:\n%q", what, l.failed.Load(), l.sent.Load(), l.why)
	}
	if l.sent.Load() < 40 {
		t.Errorf("%s: %d requests, too few to say anything", what, l.sent.Load())
	}
}
