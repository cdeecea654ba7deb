package webhook

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// newUnconnected returns a webhook for a URL that was just declared, and whose tenant has no event for it.
func newUnconnected(e *endpoint, url string) (*fakeStore, *Deliverer) {
	s, d := newDelivery(e)
	s.Events, s.URL, s.Message = []string{"user.erase"}, url, NotConnected
	return s, d
}

// A connection to the address is enough for a webhook to become ready, without an event and without a request.
func TestConnectionIsMadeWithoutEvents(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	s, d := newUnconnected(e, e.URL)
	deliver(t, s, d)
	if !s.Connected() || s.Position != 4 || len(e.got) != 0 {
		t.Errorf("webhook %+v after requests %v, want a connected one at position 4 and no request", s.Webhook, e.got)
	}
}

// Events are delivered by the job that makes the connection.
func TestEventsFollowTheConnection(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	s, d := newDelivery(e)
	s.Message = NotConnected
	deliver(t, s, d)
	if !s.Connected() || len(e.got) != 2 {
		t.Errorf("webhook %+v after %d requests, want a connected one after 2", s.Webhook, len(e.got))
	}
}

// A webhook whose address cannot be connected to never counts as connected, although none of its events fails. It reports the
// cause, and is disabled in the end.
func TestWithoutConnection(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	stopped := httptest.NewServer(http.NotFoundHandler())
	stopped.Close()
	unknown := httptest.NewTLSServer(http.NotFoundHandler()) // its certificate is not trusted
	t.Cleanup(unknown.Close)
	for name, c := range map[string]struct {
		url     string
		sender  *Sender
		failing int // the attempt from which the webhook counts as failing
		want    string
	}{
		"refused address":       {e.URL, NewSender(nil, time.Now), 1, errForbidden.Error()},
		"unreachable address":   {stopped.URL, NewSender(loopback, time.Now), FailingAttempts, NoResponse},
		"untrusted certificate": {unknown.URL, NewSender(loopback, time.Now), FailingAttempts, "tls: failed to verify certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, d := newUnconnected(e, c.url)
			d.Sender = c.sender
			for attempt := 1; !s.Disabled; attempt++ {
				deliver(t, s, d)
				if s.Connected() || s.Position != 0 || s.Failing() != (attempt >= c.failing) {
					t.Fatalf("webhook %+v after attempt %d, want failing from attempt %d", s.Webhook, attempt, c.failing)
				}
				if !strings.HasPrefix(s.Message, NotConnected+": "+c.want) {
					t.Fatalf("message %q, want %q", s.Message, c.want)
				}
				s.now = s.Due
			}
		})
	}
}

// A name that leads to a refused address later fails at the first attempt of an event: the next one cannot succeed.
func TestRefusedAddressFailsAtFirstAttempt(t *testing.T) {
	t.Parallel()
	s, d := newDelivery(newEndpoint(t))
	d.Sender = NewSender(nil, time.Now)
	deliver(t, s, d)
	if !s.Failing() || s.Message != errForbidden.Error() {
		t.Errorf("webhook %+v, want a failing one", s.Webhook)
	}
}
