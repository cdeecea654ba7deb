package events_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/metering"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tokens"
	"github.com/mnemo-dev/mnemo/test/installation"
)

const (
	meteredRounds  = 2
	meteredClients = 6
	meteredCalls   = 15
)

// history is what the clients did.
type history struct {
	acknowledged atomic.Int64 // requests with a successful response
	unknown      atomic.Int64 // requests without a response
	refused      atomic.Int64 // requests with an error, which are not billed

	mark string // in each text
	kill func() // called in the middle, unless nil

	mu    sync.Mutex
	texts []string // of acknowledged memories
}

// run calls the server from several clients, and returns when all calls have ended.
func (h *history) run(t *testing.T, c *client, url string, round int) {
	var clients sync.WaitGroup
	for n := range meteredClients {
		clients.Go(func() {
			for call := range meteredCalls {
				h.step(t, c, url, fmt.Sprintf("2026-05-04 Client %d wrote line %d of round %d about %s.", n, call, round, h.mark))
			}
		})
	}
	clients.Wait()
}

// step stores a memory, searches, and sends an invalid request.
func (h *history) step(t *testing.T, c *client, url, text string) {
	body, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		t.Error(err)
	}
	if h.record(c.call(t.Context(), http.MethodPost, url+"/api/memory", string(body))) {
		h.mu.Lock()
		h.texts = append(h.texts, text)
		h.mu.Unlock()
	}
	h.record(c.call(t.Context(), http.MethodGet, url+"/api/v2/memory?query=flowers&count=3", ""))
	h.record(c.call(t.Context(), http.MethodPost, url+"/api/memory", `{"text":""}`))
}

func (h *history) record(status int, err error) bool {
	switch {
	case err != nil:
		h.unknown.Add(1)
	case status >= http.StatusBadRequest:
		h.refused.Add(1)
	default:
		if n := h.acknowledged.Add(1); n > meteredClients*meteredCalls && h.kill != nil {
			h.kill()
		}
		return true
	}
	return false
}

// TestUsageSurvivesKill kills servers with SIGKILL right after their last response, when
// what they counted is not in the database yet, and compares the exported usage with the
// history. Then it kills one under load: what its client did not learn may be counted or not.
func TestUsageSurvivesKill(t *testing.T) {
	t.Parallel()
	i := installation.New(t, installation.Options{})
	i.Operate(t)
	tn := i.Tenant("metered", "alice")
	rate := int64(1_000_000)
	tn.Spec.Quota.RequestsPerMinute = &rate
	i.MustCreate(t, tn)
	c := newClient(tokenOf(t, i, "metered", "alice"))
	dir := t.TempDir()
	env := "MNEMO_USAGE_DIR=" + dir

	clean := history{mark: "tulips"}
	for round := range meteredRounds {
		server := i.Serve(t, env)
		clean.run(t, c, server.URL, round)
		server.Kill()
	}
	if n := clean.unknown.Load(); n != 0 {
		t.Fatalf("%d requests have no response", n)
	}
	clean.compare(t, i, settled(t, i, dir), 0)

	killed := history{mark: "roses"}
	server := i.Serve(t, env)
	killed.kill = sync.OnceFunc(server.Kill)
	killed.run(t, c, server.URL, meteredRounds)
	unknown := killed.unknown.Load()
	if unknown == 0 || killed.acknowledged.Load() == 0 {
		t.Errorf("the server was not killed under load: %d requests succeeded, %d have no response", killed.acknowledged.Load(), unknown)
	}
	killed.compare(t, i, settled(t, i, dir), unknown)
}

// settled starts a server, waits until it has stored what others counted, and returns the
// usage of the tenant since the last call: that of a day which it makes the previous one.
func settled(t *testing.T, i *installation.Installation, dir string) map[string]int64 {
	t.Helper()
	server := i.Serve(t, "MNEMO_USAGE_DIR="+dir)
	installation.Eventually(t, installation.Patience, func() string {
		var pending int
		if err := i.Owner.QueryRow(t.Context(), `select (select count(*) from audit_pending)
			+ (select count(*) from units where embedding is null)`).Scan(&pending); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		if pending > 0 || len(files) > 1 {
			return fmt.Sprintf("%d rows and %d files are pending", pending, len(files))
		}
		return ""
	})
	server.Kill()
	for _, shift := range []string{
		"update usage set metered_on = metered_on - 1", "update usage_days set day = day - 1000", "update usage_days set day = day + 999",
	} {
		if _, err := i.Owner.Exec(t.Context(), shift); err != nil {
			t.Fatal(err)
		}
	}
	out := i.Run(t, "usage", "export", "--day", "yesterday", "--tenant", i.Namespace+"/metered")
	if again := i.Run(t, "usage", "export", "--day", "yesterday", "--tenant", i.Namespace+"/metered"); again != out {
		t.Errorf("exporting the day again gave\n%s\nafter\n%s", again, out)
	}
	got := map[string]int64{}
	for line := range strings.Lines(out) {
		e := event.New()
		var data metering.EventData
		if err := errors.Join(json.Unmarshal([]byte(line), &e), e.Validate(), e.DataAs(&data)); err != nil {
			t.Fatal(err)
		}
		got[e.Type()] = data.Value
	}
	return got
}

// compare compares the usage with the history and with what is stored. unknown is the number of
// requests that may be counted or not.
func (h *history) compare(t *testing.T, i *installation.Installation, got map[string]int64, unknown int64) {
	t.Helper()
	rows, err := i.Owner.Query(t.Context(), "select text from memories order by seq")
	if err != nil {
		t.Fatal(err)
	}
	stored, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	var changes, embedded, storage int64
	for _, text := range stored {
		storage += int64(len(text))
		if !strings.Contains(text, h.mark) {
			continue
		}
		changes++
		embedded += int64(tokens.Count(retrieve.MemoryDense(text)))
	}
	if n := int64(len(h.texts)); changes < n || changes > n+unknown {
		t.Errorf("%d memories are stored, %d were acknowledged and %d requests have no response", changes, n, unknown)
	}
	requests := got["dev.mnemo.usage.requests.v1"]
	t.Logf("%d requests acknowledged, %d refused, %d unknown, %d counted; differences: changes %d, storage %d, embedded %d",
		h.acknowledged.Load(), h.refused.Load(), unknown, requests, got["dev.mnemo.usage.changes.v1"]-changes,
		got["dev.mnemo.usage.storage.v1"]-storage, got["dev.mnemo.usage.embedded.v1"]-embedded)
	if n := h.acknowledged.Load(); requests < n || requests > n+unknown {
		t.Errorf("%d requests are counted, %d were acknowledged and %d have no response", requests, n, unknown)
	}
	want := map[string]int64{
		"dev.mnemo.usage.requests.v1": requests, "dev.mnemo.usage.changes.v1": changes,
		"dev.mnemo.usage.storage.v1": storage, "dev.mnemo.usage.embedded.v1": embedded,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
}
