package webhook

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	testTenant tenant.ID = "018f0000-0000-7000-8000-000000000001"
	testSecret string    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// The signature is that of the example of the specification.
func TestSignature(t *testing.T) {
	t.Parallel()
	got, err := sign([]string{testSecret}, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; err != nil || got != want {
		t.Errorf("signature %s, %v, want %s", got, err, want)
	}
}

// Every verb of the audit log can be selected, with its name and with its kind.
func TestEveryVerbCanBeSelected(t *testing.T) {
	t.Parallel()
	for _, v := range audit.Verbs {
		kind, _, _ := strings.Cut(string(v), ".")
		for _, e := range []string{kind + ".*", string(v), "*"} {
			s := Spec{Name: "a", URL: "https://example.com", Events: []string{e}}
			if err := s.Validate(); err != nil || !s.Matches(v) {
				t.Errorf("%s does not select %s: %v", e, v, err)
			}
		}
	}
}

// The error of an unknown event names the events that exist.
func TestUnknownEventNamesTheEvents(t *testing.T) {
	t.Parallel()
	err := Spec{Name: "a", URL: "https://example.com", Events: []string{"memory.created"}}.Validate()
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), `"memory.created" must be one of *, memory.*, `) ||
		!strings.Contains(err.Error(), "memory.create, memory.update") {
		t.Errorf("error %v", err)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	good := Spec{Name: "billing-1", URL: "https://example.com/hook?a=b", Events: []string{"memory.*", "user.erase"}}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for reason, change := range map[string]func(*Spec){
		"no name":      func(s *Spec) { s.Name = "" },
		"capital":      func(s *Spec) { s.Name = "A" },
		"no host":      func(s *Spec) { s.URL = "https:///x" },
		"scheme":       func(s *Spec) { s.URL = "ftp://example.com" },
		"password":     func(s *Spec) { s.URL = "https://a:b@example.com" },
		"zone":         func(s *Spec) { s.URL = "https://[64:ff9b::7f00:1%25lo]/" },
		"long URL":     func(s *Spec) { s.URL += strings.Repeat("x", maxURL) },
		"no events":    func(s *Spec) { s.Events = nil },
		"unknown kind": func(s *Spec) { s.Events = []string{"memories.*"} },
		"unknown verb": func(s *Spec) { s.Events = []string{"memory.created"} },
		"no action":    func(s *Spec) { s.Events = []string{"memory"} },
	} {
		s := good
		if change(&s); !fault.Is(s.Validate(), fault.Invalid) {
			t.Errorf("%s: %+v is valid", reason, s)
		}
	}
}

// The addresses are those of the special-purpose registries of IANA, with what embeds an IPv4 address, and with zones.
func TestPublicAddresses(t *testing.T) {
	t.Parallel()
	public := []string{
		"93.184.216.34", "100.63.255.255", "100.128.0.1", "198.20.0.1", "2606:2800:220:1::1", "2a00:1450:4001::1", "2001:4860:4860::8888",
		"::ffff:93.184.216.34",
	}
	for _, address := range public {
		if a := netip.MustParseAddr(address); !isPublic(a) {
			t.Errorf("%s is refused", a)
		}
	}
	special := []string{
		"0.0.0.0", "10.0.0.1", "100.64.0.1", "127.0.0.1", "169.254.169.254", "172.16.0.1", "192.0.0.8", "192.0.2.1", "192.88.99.1",
		"192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::7f00:1", "100::1", "100:0:0:1::1",
		"2001::1", "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1", "2002:7f00:1::", "3fff::1", "5f00::1", "fc00::1", "fd00::1", "fe80::1",
		"fec0::1", "ff02::1",
	}
	for _, address := range special {
		a := netip.MustParseAddr(address)
		if isPublic(a) {
			t.Errorf("%s is public", a)
		}
		if zoned := a.WithZone("lo"); isPublic(zoned) {
			t.Errorf("%s is public", zoned)
		}
	}
}

// fakeStore has one webhook, and a clock.
type fakeStore struct {
	Webhook
	records []Record
	saved   []Progress
	now     time.Time
}

func (f *fakeStore) NextRecords(_ context.Context, job Args, lease time.Duration, _ int) (Webhook, []Record, error) {
	if !job.Due.Equal(f.Due) {
		return Webhook{}, nil, NotFound(job.Webhook)
	}
	f.Due = f.now.Add(lease)
	i := slices.IndexFunc(f.records, func(r Record) bool { return r.Sequence > f.Position })
	if i < 0 {
		return f.Webhook, nil, nil
	}
	return f.Webhook, f.records[i:], nil
}

func (f *fakeStore) SaveProgress(_ context.Context, job Args, p Progress) (time.Time, error) {
	if p.From != f.Position || !job.Due.Equal(f.Due) {
		return time.Time{}, nil
	}
	f.Position, f.Attempts, f.Disabled, f.Skipped, f.Message = p.To, p.Attempts, p.Disabled, f.Skipped+p.Skipped, p.Message
	f.Due = f.now.Add(p.Wait)
	f.saved = append(f.saved, p)
	return f.Due, nil
}

func (f *fakeStore) ReleaseWebhook(_ context.Context, job Args) error {
	if job.Due.Equal(f.Due) && f.Attempts == 0 {
		f.Due = f.now
	}
	return nil
}

func (*fakeStore) QueueDeliveries(context.Context, time.Duration) error { return nil }

// claim returns a job that claims the webhook, if it is due.
func (f *fakeStore) claim() (job Args, ok bool) {
	if f.Disabled || f.Due.After(f.now) {
		return Args{}, false
	}
	f.Due = f.now.Add(lease)
	return Args{Tenant: testTenant, Webhook: "a", Due: f.Due}, true
}

// endpoint records verified requests, and answers with a status.
type endpoint struct {
	*httptest.Server
	mu     sync.Mutex
	status int
	got    []string // webhook-id, type and objects
}

func newEndpoint(t *testing.T) *endpoint {
	t.Helper()
	e := &endpoint{status: http.StatusNoContent}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		verifier, err := standardwebhooks.NewWebhook(testSecret)
		if err != nil {
			t.Error(err)
		}
		if err := verifier.Verify(body, r.Header); err != nil {
			t.Errorf("verify: %v", err)
		}
		var v event
		if err := json.Unmarshal(body, &v); err != nil {
			t.Error(err)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.got = append(e.got, r.Header.Get("webhook-id")+" "+string(v.Type)+" "+strings.Join(v.Data.Objects, ","))
		if e.status == http.StatusFound {
			w.Header().Set("Location", e.URL+"/elsewhere")
		}
		w.WriteHeader(e.status)
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) setStatus(status int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.status = status
}

// newDelivery returns a webhook for memories of the endpoint, with two memories and another
// record.
func newDelivery(e *endpoint) (*fakeStore, *Deliverer) {
	s := &fakeStore{now: time.Unix(1e9, 0), Webhook: Webhook{Tenant: testTenant, Spec: Spec{Name: "a", URL: e.URL, Events: []string{"memory.*"}}, Secrets: []string{testSecret}}}
	var head audit.Head
	for _, v := range []struct {
		verb   audit.Verb
		object string
	}{{audit.MemoryCreate, "m1"}, {audit.BucketCreate, "b1"}, {audit.MemoryDelete, "m2"}, {audit.BucketDelete, "b1"}} {
		r := audit.Record{Tenant: testTenant, At: time.Unix(1e9, 0), Actor: "user", Verb: v.verb, Objects: []string{v.object}}
		if err := head.Seal(&r); err != nil {
			panic(err)
		}
		s.records = append(s.records, Record{Record: r, UserName: "alice"})
	}
	return s, &Deliverer{Store: s, Sender: NewSender(loopback, time.Now), Log: slog.New(slog.DiscardHandler)}
}

// deliver runs a job if the webhook is due.
func deliver(t *testing.T, s *fakeStore, d *Deliverer) {
	t.Helper()
	if job, ok := s.claim(); ok {
		run(t, d, job)
	}
}

// run runs a job.
func run(t *testing.T, d *Deliverer, job Args) {
	t.Helper()
	if err := d.Deliver(t.Context(), job); err != nil {
		t.Fatal(err)
	}
}

// Matching events are delivered in order, once, with a valid signature.
func TestDeliver(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	s, d := newDelivery(e)
	deliver(t, s, d)
	deliver(t, s, d)
	want := []string{s.records[0].ID() + " memory.create m1", s.records[2].ID() + " memory.delete m2"}
	if diff := cmp.Diff(want, e.got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if s.Position != 4 {
		t.Errorf("position %d, want 4", s.Position)
	}
}

// An event that fails is retried with the same id and growing waits, keeps those behind it,
// and disables the webhook in the end, without losing its place.
func TestRetries(t *testing.T) {
	t.Parallel()
	for status, attempts := range map[int]int{
		http.StatusInternalServerError: len(schedule) + 1, http.StatusTooManyRequests: len(schedule) + 1,
		http.StatusFound: len(schedule) + 1, http.StatusNotFound: len(schedule) + 1, http.StatusGone: 1,
	} {
		e := newEndpoint(t)
		s, d := newDelivery(e)
		e.setStatus(status)
		for range attempts + 3 {
			deliver(t, s, d)
			deliver(t, s, d) // not due before the wait is over
			s.now = s.Due
		}
		if len(e.got) != attempts || !s.Disabled || s.Position != 0 {
			t.Errorf("status %d: %d attempts, disabled %t at %d, want %d attempts", status, len(e.got), s.Disabled, s.Position, attempts)
		}
		if len(slices.Compact(e.got)) != 1 {
			t.Errorf("status %d: the attempts differ: %v", status, e.got)
		}
		var total time.Duration
		for _, p := range s.saved {
			total += p.Wait
		}
		if attempts > 1 && (total < 75*time.Hour || total > 85*time.Hour) {
			t.Errorf("the attempts of status %d take %s", status, total)
		}
	}
}

// Of several jobs, only the one with the latest claim makes an attempt, and none before the wait is over.
func TestDuplicateJobs(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	s, d := newDelivery(e)
	e.setStatus(http.StatusServiceUnavailable)
	first, _ := s.claim()
	s.now = s.Due // the first job was queued for so long that the claim ended
	second, _ := s.claim()
	for _, job := range []Args{first, second, first, second} {
		run(t, d, job)
	}
	if len(e.got) != 1 || s.Attempts != 1 {
		t.Errorf("%d requests and %d attempts, want 1", len(e.got), s.Attempts)
	}
	if want := s.now.Add(s.saved[0].Wait); !s.Due.Equal(want) {
		t.Errorf("the next attempt is due at %s, want %s", s.Due, want)
	}
}

// The endpoint recovers: everything is delivered.
func TestRecovery(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	s, d := newDelivery(e)
	e.setStatus(http.StatusServiceUnavailable)
	deliver(t, s, d)
	e.setStatus(http.StatusOK)
	s.now = s.Due
	deliver(t, s, d)
	if len(e.got) != 3 || s.Position != 4 || s.Attempts != 0 {
		t.Errorf("requests %v, position %d, attempts %d", e.got, s.Position, s.Attempts)
	}
}

// An event that the endpoint refuses does not stop those behind it.
func TestRefusedEvent(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	s, d := newDelivery(e)
	e.setStatus(http.StatusUnprocessableEntity)
	for range 2 * refusals {
		deliver(t, s, d)
		s.now = s.Due
	}
	if len(e.got) != 2*refusals || s.Skipped != 2 || s.Disabled {
		t.Errorf("%d requests, %d skipped, disabled %t", len(e.got), s.Skipped, s.Disabled)
	}
}

// Addresses inside the network are refused when connecting, whatever the name, unless they are
// allowed.
func TestForbiddenAddress(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a refused address was called") }))
	t.Cleanup(secure.Close)
	s, _ := newDelivery(e)
	for _, target := range []string{e.URL, strings.Replace(e.URL, "127.0.0.1", "localhost", 1), secure.URL} {
		w := s.Webhook
		w.URL = target
		if err := NewSender(nil, time.Now).Send(t.Context(), w, s.records[0]); err != errForbidden { //nolint:errorlint // not wrapped
			t.Errorf("Send to %s = %v, want %v", target, err, errForbidden)
		}
	}
	if len(e.got) != 0 {
		t.Errorf("a refused address received %v", e.got)
	}
}

// During the overlap of a rotation both secrets sign.
func TestTwoSecrets(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	s, d := newDelivery(e)
	other, err := NewSecret(strings.NewReader(strings.Repeat("x", secretSize)))
	if err != nil {
		t.Fatal(err)
	}
	s.Secrets = []string{other, testSecret}
	deliver(t, s, d)
	if len(e.got) != 2 {
		t.Errorf("events %v, want 2", e.got)
	}
}
