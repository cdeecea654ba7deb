package events_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/mnemo-dev/mnemo/test/installation"
)

// receiver is an endpoint that verifies each request.
type receiver struct {
	*httptest.Server
	t *testing.T

	mu      sync.Mutex
	secret  string // set before the first event
	status  int
	entered chan string    // ids of requests that wait for hold
	hold    chan struct{}  // nil to answer at once
	tries   map[string]int // accepted requests by webhook-id
	objects map[string]string
	failed  int
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{t: t, status: http.StatusOK, entered: make(chan string, 100), tries: map[string]int{}, objects: map[string]string{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the server was killed
	}
	r.mu.Lock()
	secret, hold := r.secret, r.hold
	r.mu.Unlock()
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		r.t.Error(err)
		return
	}
	if err := verifier.Verify(body, req.Header); err != nil {
		r.t.Errorf("verify: %v", err)
	}
	id := req.Header.Get(standardwebhooks.HeaderWebhookID)
	if hold != nil {
		r.entered <- id
		<-hold
	}
	var event struct {
		Type string
		Data struct{ Objects []string }
	}
	if err := json.Unmarshal(body, &event); err != nil {
		r.t.Error(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status != http.StatusOK {
		r.failed++
	} else {
		r.tries[id]++
		r.objects[id] = event.Type + " " + strings.Join(event.Data.Objects, ",")
	}
	w.WriteHeader(r.status)
}

// setSecret changes the secret with which requests are verified.
func (r *receiver) setSecret(secret string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secret = secret
}

// set changes the answer.
func (r *receiver) set(status int, hold chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status, r.hold = status, hold
}

func (r *receiver) received() (events map[string]bool, ids, failed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	events = map[string]bool{}
	for _, o := range r.objects {
		events[o] = true
	}
	return events, len(r.tries), r.failed
}

// want waits until exactly the events were received, each under one id.
func (r *receiver) want(events map[string]bool) {
	r.t.Helper()
	installation.Eventually(r.t, installation.Patience, func() string {
		got, ids, failed := r.received()
		if diff := cmp.Diff(events, got); diff != "" || ids != len(events) {
			return fmt.Sprintf("%d ids, %d failed requests, events (-want +got):\n%s", ids, failed, diff)
		}
		return ""
	})
}

// create stores n memories and returns their events.
func create(t *testing.T, c *client, url, text string, n int, events map[string]bool) {
	t.Helper()
	for i := range n {
		id := c.create(t, url, fmt.Sprintf("2026-05-04 %s number %d.", text, i))
		events["memory.create "+id] = true
	}
}

// TestWebhooksSurviveKill delivers each acknowledged change at least once, under one id, although
// the server is killed between the commit and the delivery, and during a delivery, and although
// the endpoint fails. Then the events are replayed.
func TestWebhooksSurviveKill(t *testing.T) {
	t.Parallel()
	i := installation.New(t, installation.Options{})
	i.Operate(t)
	i.MustCreate(t, i.Tenant("hooked", "alice"))
	c := newClient(tokenOf(t, i, "hooked", "alice"))
	r := newReceiver(t)
	env := "MNEMO_WEBHOOK_NETWORKS=127.0.0.0/8"
	name := []string{"--tenant", i.Namespace + "/hooked", "--name", "a"}
	begin := time.Now()
	r.setSecret(strings.TrimSpace(i.Run(t, append([]string{"webhooks", "create", "--url", r.URL, "--events", "memory.*"}, name...)...)))

	events := map[string]bool{}
	server := i.Serve(t, env, "MNEMO_WEBHOOKS=false")
	create(t, c, server.URL, "Committed before any delivery", 5, events)
	server.Kill()

	hold := make(chan struct{})
	r.set(http.StatusOK, hold)
	server = i.Serve(t, env)
	interrupted := <-r.entered
	server.Kill() // during a delivery
	r.set(http.StatusServiceUnavailable, nil)
	close(hold)

	server = i.Serve(t, env)
	installation.Eventually(t, installation.Patience, func() string { // the claim of the killed server ends after a minute
		state := i.Run(t, "webhooks", "list", "--tenant", i.Namespace+"/hooked")
		if !strings.Contains(state, "failing since") || !strings.Contains(state, "status 503") {
			return state
		}
		return ""
	})
	create(t, c, server.URL, "Committed while the endpoint fails", 5, events)
	if got, _, _ := r.received(); len(got) != 0 {
		t.Errorf("the failing endpoint accepted %v", got)
	}
	r.set(http.StatusOK, nil)
	i.Run(t, append([]string{"webhooks", "replay"}, name...)...) // does not wait for the next attempt
	r.want(events)
	if r.objects[interrupted] == "" {
		t.Errorf("event %s, whose delivery was interrupted, was not delivered under its id", interrupted)
	}

	i.Run(t, append([]string{"webhooks", "replay", "--since", begin.UTC().Format(time.RFC3339)}, name...)...)
	installation.Eventually(t, installation.Patience, func() string {
		r.mu.Lock()
		defer r.mu.Unlock()
		for id, n := range r.tries {
			if n < 2 {
				return fmt.Sprintf("%s was delivered %d times", r.objects[id], n)
			}
		}
		return ""
	})
	r.want(events)
}
