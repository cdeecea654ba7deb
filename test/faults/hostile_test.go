package faults_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/test/installation"
)

const (
	// chartMemory is the memory limit of the chart's API server, and goMemory the GOMEMLIMIT that follows from it.
	chartMemory, goMemory = 1 << 30, "GOMEMLIMIT=858993459"
	// probes and shortProbes are how many requests the other tenant sends to measure their duration.
	probes, shortProbes = 100, 20
	// slowdown is how much longer requests of the other tenant may take. Durations below quick are not compared.
	slowdown, quick = 3, 100 * time.Millisecond
)

// canceled is the outcome of a request that had no response when an input ended.
const canceled = "canceled"

// TestHostileInputs sends each input that once stopped an API server, or slowed it down for everybody, to a server with
// the memory of the chart. It must stay below its limit, and serve another tenant. With -overload, the duration of the
// other tenant's requests is limited too.
func TestHostileInputs(t *testing.T) {
	v := newVictim(t)
	t.Log("| input | memory, MiB: before → peak | CPU s: server, database | other tenant's p95, ms: without → with | responses |")
	for _, input := range hostileInputs {
		m := v.attack(t, input)
		t.Logf("| %s | %d → %d | %.1f, %.1f | %d → %d | %s |", input.name, m.before>>20, m.peak>>20, m.server, m.database,
			m.without.Milliseconds(), m.with.Milliseconds(), m.responses())
		m.check(t, input)
	}
}

// victim is a server with a hostile user, and a user of another tenant.
type victim struct {
	*installation.Installation
	server         *installation.Process
	hostile, other *caller
	cookie         string            // of the hostile user's session in the dashboard
	n              int               // probes so far
	conversations  map[string]string // ids of the hostile user's, by their titles
	adds           atomic.Int64      // requests that add memories
}

// caller sends requests of a user.
type caller struct{ url, token string }

func newVictim(t *testing.T) *victim {
	t.Helper()
	v := &victim{Installation: installation.New(t, installation.Options{}), conversations: map[string]string{}}
	v.Operate(t)
	v.server = v.Serve(t, goMemory)
	for _, name := range []string{"hostile", "other"} {
		tn := v.Tenant(name, "user")
		tn.Spec.Quota.RequestsPerMinute = new(int64(1_000_000)) // so that no input is refused for its rate
		v.MustCreate(t, tn)
	}
	installation.Eventually(t, installation.Patience, func() string {
		if v.Token(t, "hostile", "user") == "" || v.Token(t, "other", "user") == "" {
			return "the users have no tokens"
		}
		return ""
	})
	v.hostile = &caller{v.server.URL, v.Token(t, "hostile", "user")}
	v.other = &caller{v.server.URL, v.Token(t, "other", "user")}
	v.cookie = v.signIn(t)
	return v
}

// signIn signs the hostile user in to the dashboard and returns the cookie of the session.
func (v *victim) signIn(t *testing.T) (cookie string) {
	t.Helper()
	form := url.Values{"name": {v.Namespace + "/hostile/user"}, "password": {v.Password(t, "hostile", "user")}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.server.URL+"/sign-in", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	for _, c := range res.Cookies() {
		cookie += c.Name + "=" + c.Value + "; "
	}
	if res.StatusCode != http.StatusSeeOther || cookie == "" {
		t.Fatalf("sign in: %s", res.Status)
	}
	return cookie
}

// send sends a request and returns the status and the body.
func (c *caller) send(ctx context.Context, method, path string, body []byte, headers ...string) (int, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	return res.StatusCode, out, err
}

// measurement is what an input cost.
type measurement struct {
	before, peak     int64   // resident memory of the server, bytes
	server, database float64 // seconds of CPU
	without, with    time.Duration
	refused          []string // of the other tenant's requests
	answers          map[string]int
}

// attack sends an input while another tenant uses the server.
func (v *victim) attack(t *testing.T, in hostileInput) measurement {
	t.Helper()
	if in.prepare != nil {
		in.prepare(t, v)
	}
	m := measurement{answers: map[string]int{}}
	without, refused := v.probe(t, func() bool { return true })
	m.without, m.refused = p95(without), refused
	v.resetPeak(t)
	m.before = v.memory(t, "VmRSS:")
	server, database := cpu(v.server.PID()), v.databaseCPU(t)

	ctx, stop := context.WithCancel(t.Context())
	answered, wait := in.start(ctx, v, m.answers)
	with, refused := v.probe(t, func() bool {
		select {
		case <-answered:
			return true
		default:
			return false
		}
	})
	stop()
	wait()
	m.with, m.refused = p95(with), append(m.refused, refused...)
	m.peak = v.memory(t, "VmHWM:")
	m.server, m.database = cpu(v.server.PID())-server, v.databaseCPU(t)-database
	return m
}

// start starts the clients, which end with ctx, and counts their responses until wait returns. answered is closed when
// each has had a response.
func (in hostileInput) start(ctx context.Context, v *victim, answers map[string]int) (answered chan struct{}, wait func()) {
	var mu sync.Mutex
	var clients, first sync.WaitGroup
	for n := range in.clients {
		first.Add(1)
		clients.Go(func() {
			answer := sync.OnceFunc(first.Done)
			defer answer()
			for sent := false; ctx.Err() == nil && (!sent || !in.once); sent = true {
				response := in.send(ctx, v, n)
				if ctx.Err() != nil {
					response = canceled
				}
				mu.Lock()
				answers[response]++
				mu.Unlock()
				answer()
				pauseClient(ctx)
			}
		})
	}
	answered = make(chan struct{})
	go func() {
		first.Wait()
		close(answered)
	}()
	return answered, clients.Wait
}

// pauseClient waits between two requests of a client. Many cheap requests are subject to the limit of the rate.
func pauseClient(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(50 * time.Millisecond):
	}
}

// check checks the bounds of a measurement.
func (m measurement) check(t *testing.T, in hostileInput) {
	t.Helper()
	if m.peak > chartMemory {
		t.Errorf("%s: the server used %d MiB, want at most %d", in.name, m.peak>>20, chartMemory>>20)
	}
	if len(m.refused) > 0 {
		t.Errorf("%s: %d requests of another tenant failed: %s", in.name, len(m.refused), m.refused[0])
	}
	if *overload > 0 && m.with > max(slowdown*m.without, quick) {
		t.Errorf("%s: the p95 of another tenant's requests is %s, want at most %d times %s", in.name, m.with, slowdown, m.without)
	}
	for answer := range m.answers {
		status, _, _ := strings.Cut(answer, " ")
		if !slices.Contains(in.want, status) && answer != canceled {
			t.Errorf("%s: response %s, want one of %v", in.name, answer, in.want)
		}
	}
}

func (m measurement) responses() string {
	var out []string
	for _, answer := range slices.Sorted(maps.Keys(m.answers)) {
		out = append(out, fmt.Sprintf("%s (%d)", answer, m.answers[answer]))
	}
	return strings.Join(out, ", ")
}

// probe stores and searches memories of the other tenant until it has measured enough and a condition holds.
func (v *victim) probe(t *testing.T, done func() bool) (took []time.Duration, refused []string) {
	t.Helper()
	enough := shortProbes
	if *overload > 0 {
		enough = probes
	}
	for len(took) < enough || !done() {
		v.n++
		method, path, body := http.MethodGet, fmt.Sprintf("/api/v2/memory?count=5&query=lantern%d", v.n%50), ""
		if v.n%2 == 0 {
			method, path, body = http.MethodPost, "/api/memory", fmt.Sprintf(`{"text":"%d the harbour master keeps lantern%d"}`, v.n, v.n%50)
		}
		begun := time.Now()
		status, out, err := v.other.send(t.Context(), method, path, []byte(body))
		took = append(took, time.Since(begun))
		if status != http.StatusOK {
			refused = append(refused, fmt.Sprintf("%s %s: %d %.200s %v", method, path, status, out, err))
		}
	}
	return took, refused
}

func p95(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)*95/100]
}

// memory returns a field of the memory of the server's process, in bytes.
func (v *victim) memory(t *testing.T, field string) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", v.server.PID()))
	if err != nil {
		t.Fatal(err)
	}
	var kib int64
	_, after, _ := strings.Cut(string(status), field)
	if _, err := fmt.Sscan(after, &kib); err != nil {
		t.Fatalf("%s %v", field, err)
	}
	return kib << 10
}

// resetPeak makes the present memory the peak.
func (v *victim) resetPeak(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", v.server.PID()), []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
}

// databaseCPU returns the seconds of CPU of the connections of PostgreSQL that are open.
func (v *victim) databaseCPU(t *testing.T) (sum float64) {
	t.Helper()
	rows, err := v.Owner.Query(t.Context(), "select pid from pg_stat_activity where datname = current_database()")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var pid int
		if err := rows.Scan(&pid); err != nil {
			t.Fatal(err)
		}
		sum += cpu(pid)
	}
	return sum
}

// cpu returns the seconds of CPU of a process, 0 if it has ended.
func cpu(pid int) float64 {
	const ticks = 100 // per second, on all architectures of Linux
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(string(stat), ") ") // the name may contain spaces
	fields := strings.Fields(after)
	if len(fields) < 13 {
		return 0
	}
	var user, system float64
	_, _ = fmt.Sscan(fields[11], &user)
	_, _ = fmt.Sscan(fields[12], &system)
	return (user + system) / ticks
}
