package placement_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/test/installation"
)

func TestMain(m *testing.M) {
	controllers.SetLogger(slog.New(slog.DiscardHandler))
	m.Run()
}

// interval is the time between two searches of a user. Searches without a pause would use the processor that the
// migration needs.
const interval = 25 * time.Millisecond

// host is an installation with an operator and a server.
type host struct {
	*installation.Installation
	server *installation.Process
}

func newHost(t *testing.T, o installation.Options, operator ...string) *host {
	t.Helper()
	h := &host{Installation: installation.New(t, o)}
	h.Operate(t, operator...)
	h.server = h.Serve(t)
	return h
}

// user is the user of a tenant, with the number of messages sent.
type user struct {
	host          *host
	tenant, token string
	messages      int
	provider      string // of the messages
}

// add creates a tenant whose only user has the given number of messages, all of
// which are indexed.
func (h *host) add(t *testing.T, tenant string, isolation v1alpha1.Isolation, messages int) *user {
	t.Helper()
	tn := h.Tenant(tenant, "alice")
	tn.Spec.Isolation = isolation
	tn.Spec.Quota = v1alpha1.TenantQuota{RequestsPerMinute: new(int64(1_000_000))}
	h.MustCreate(t, tn)
	u := &user{host: h, tenant: tenant, provider: "custom"}
	installation.Eventually(t, installation.Patience, func() string {
		if u.token = h.Token(t, tenant, "alice"); u.token == "" {
			return "no token in the Secret"
		}
		return ""
	})
	const each = 250
	var wait sync.WaitGroup
	for worker := range 4 {
		wait.Go(func() {
			for from := worker * each; from < messages; from += 4 * each {
				u.say(t, from, min(from+each, messages))
			}
		})
	}
	wait.Wait()
	u.messages = messages
	u.settle(t)
	return u
}

// text returns the message about a number. Searches use another word for it.
func (u *user) text(n int) string {
	return fmt.Sprintf("green%d stands in the yard of %s.", n, u.tenant)
}

// say stores a conversation about the numbers in [from, to).
func (u *user) say(t *testing.T, from, to int) {
	t.Helper()
	type message struct {
		ID        string `json:"id"`
		Role      string `json:"role"`
		Content   string `json:"content"`
		CreatedAt string `json:"createdAt"`
	}
	var messages []message
	for n := from; n < to; n++ {
		messages = append(messages, message{fmt.Sprint(n), "user", u.text(n), "2026-05-01T00:00:00Z"})
	}
	body, err := json.Marshal(map[string]any{"platform": u.provider, "conversation": map[string]any{
		"id": fmt.Sprint("from-", from), "title": "Yard", "createdAt": "2026-05-01T00:00:00Z", "messages": messages,
	}})
	if err != nil {
		t.Error(err)
		return
	}
	if _, answer, err := u.post("/api/chat-history/ingest/custom-online", body); err != nil {
		t.Errorf("store messages: %v: %s", err, answer)
	}
}

func (u *user) post(path string, body []byte) (http.Header, []byte, error) {
	req, err := http.NewRequest(http.MethodPost, u.host.server.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+u.token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s", res.Status)
	}
	return res.Header, answer, err
}

// killServer kills the server. Another one resumes its running jobs three minutes after they began, and the operator restarts its
// migrations a minute after their latest progress; killServer backdates both, so that tests do not wait.
func (h *host) killServer(t *testing.T) {
	t.Helper()
	h.server.Kill()
	for _, sql := range []string{
		"update river_job set attempted_at = attempted_at - interval '5 minutes' where state = 'running'",
		"update placement_migrations set heartbeat_at = heartbeat_at - interval '5 minutes'",
	} {
		if _, err := h.Owner.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}

// settle waits until everything is indexed, and backdates the indexing so that
// searches rely on the index.
func (u *user) settle(t *testing.T) {
	t.Helper()
	installation.Eventually(t, installation.Patience, func() string {
		var n int
		if err := u.host.Owner.QueryRow(t.Context(), "select count(*) from units where tenant_id = $1 and indexed_at is null", u.id(t)).Scan(&n); err != nil {
			return err.Error()
		}
		if n > 0 {
			return fmt.Sprintf("%d units are not indexed; unfinished jobs: %s", n, u.jobs(t))
		}
		return ""
	})
	if _, err := u.host.Owner.Exec(t.Context(), "update units set indexed_at = now() - interval '1 hour' where tenant_id = $1", u.id(t)); err != nil {
		t.Fatal(err)
	}
}

// jobs describes the unfinished jobs of the tenant.
func (u *user) jobs(t *testing.T) (jobs string) {
	t.Helper()
	if err := u.host.Owner.QueryRow(t.Context(), `select coalesce(string_agg(format('%s %s attempt %s of %s %s', kind, state, attempt, attempted_at, errors[cardinality(errors)]), '; '), 'none')
		from river_job where args ->> 'tenant' = $1 and finalized_at is null`, u.id(t)).Scan(&jobs); err != nil {
		t.Fatal(err)
	}
	return jobs
}

func (u *user) id(t *testing.T) (id string) {
	t.Helper()
	if err := u.host.Owner.QueryRow(t.Context(), "select id::text from tenants where name = $1", u.tenant).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

// find searches for a number by a word that no message contains. right reports
// whether the best result is the message about the number. problem is a result that
// is wrong even for a degraded response. It names a provider, because the vectors of one are not cached.
func (u *user) find(n int) (right, degraded bool, problem error) {
	header, answer, err := u.post("/api/chat-history/search", fmt.Appendf(nil, `{"query":"blue%d","provider":%q}`, n, u.provider))
	if err != nil {
		return false, false, fmt.Errorf("search: %w: %s", err, answer)
	}
	var out struct{ Results []struct{ Text string } }
	if err := json.Unmarshal(answer, &out); err != nil {
		return false, false, err
	}
	for _, r := range out.Results {
		if !strings.HasSuffix(r.Text, " of "+u.tenant+".") {
			return false, false, fmt.Errorf("a search of %s found %q", u.tenant, r.Text)
		}
	}
	degraded = header.Get("X-Degraded") != ""
	right = len(out.Results) > 0 && out.Results[0].Text == u.text(n)
	if !right && !degraded {
		return false, false, fmt.Errorf("%q is not the best result, but the response is not degraded: %s", u.text(n), answer)
	}
	return right, degraded, nil
}

// mustFind checks that the index finds a sample of the numbers. Degraded responses,
// which occur when Milvus is busy, are retried.
func (u *user) mustFind(t *testing.T) {
	t.Helper()
	for n := 0; n < u.messages; n += max(u.messages/40, 1) {
		installation.Eventually(t, installation.Patience, func() string {
			right, degraded, err := u.find(n)
			if err != nil {
				t.Fatalf("number %d of %s: %v", n, u.tenant, err)
			}
			if !right || degraded {
				return fmt.Sprintf("number %d of %s: found %t, degraded %t", n, u.tenant, right, degraded)
			}
			return ""
		})
	}
}

// isolate changes the tenant's isolation.
func (u *user) isolate(t *testing.T, as v1alpha1.Isolation) {
	t.Helper()
	u.host.MustPatch(t, u.tenant, fmt.Sprintf(`{"spec":{"isolation":%q}}`, as))
}

// migration is the state of a tenant's migration: the cursor is the id of the unit up to which the units
// are copied, and Last is the highest id.
type migration struct {
	Shared, Running bool
	Cursor, Last    int64
}

func (u *user) migration(t *testing.T) (m migration) {
	t.Helper()
	err := u.host.Owner.QueryRow(t.Context(), `select p.shared, m.tenant_id is not null, coalesce(m.cursor, 0),
		(select coalesce(max(x.id), 0) from units x where x.tenant_id = p.tenant_id)
		from placements p left join placement_migrations m on m.tenant_id = p.tenant_id where p.tenant_id = $1`, u.id(t)).
		Scan(&m.Shared, &m.Running, &m.Cursor, &m.Last)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
