package extract_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/extract"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/jobs"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/queue"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
)

// bundle is a database with two tenants, and a chat endpoint whose answers the test sets.
type bundle struct {
	*postgres.DB
	owner    *pgxpool.Pool
	spec     tenant.Spec
	alice    tenant.Scope
	others   []tenant.Scope // of the same tenant and of another one
	runner   *extract.Runner
	memories *memory.Service
	handle   atomic.Value // http.HandlerFunc
	asked    atomic.Int32
}

var hello = extract.Input{
	Messages:   []extract.Message{{Role: "user", Text: "Hi, I moved to Bergen."}, {Role: "assistant", Text: "How nice!"}},
	Source:     "mem0",
	Attributes: memory.Attributes{AgentID: "planner", Metadata: json.RawMessage(`{"user_id":"u"}`)},
}

func setup(t *testing.T) *bundle {
	t.Helper()
	d := postgrestest.Create(t)
	b := &bundle{DB: postgrestest.Open(t, d), spec: tenanttest.NewSpec()}
	var err error
	if b.owner, err = pgxpool.New(t.Context(), d.OwnerURL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.owner.Close)
	for _, spec := range []tenant.Spec{b.spec, tenanttest.NewSpec()} {
		got, err := b.Apply(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.EnsurePlacement(t.Context(), got.ID); err != nil {
			t.Fatal(err)
		}
		for _, u := range got.Users {
			b.others = append(b.others, tenant.Scope{Tenant: got.ID, User: u.ID})
		}
	}
	b.alice, b.others = b.others[0], b.others[1:]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.asked.Add(1)
		b.handle.Load().(http.HandlerFunc)(w, r) //nolint:forcetypeassert // says sets it
	}))
	t.Cleanup(server.Close)
	model, err := extract.NewOpenAI(server.URL+"/v1", "sk-key", "small")
	if err != nil {
		t.Fatal(err)
	}
	b.memories = memory.NewService(memory.Config{Store: b.Memories(), CountTokens: func(string) int { return 1 }, Searcher: noSearch{}, Embedders: retrieve.Embedders{}})
	b.runner = &extract.Runner{Store: b.DB, Memories: b.memories, Model: model, Log: slog.New(slog.DiscardHandler)}
	return b
}

// noSearch finds nothing.
type noSearch struct{ memory.Searcher }

// Similar implements memory.Searcher.
func (noSearch) Similar(_ context.Context, _ tenant.Scope, _ placement.Location, _ retrieve.Query, embed func() []float32) ([]retrieve.Similar, error) {
	embed()
	return nil, nil
}

// says sets the answer of the model.
func (b *bundle) says(status int, content string) {
	text, _ := json.Marshal(content) //nolint:errchkjson // a string
	b.handle.Store(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":%s}}]}`, text)
	}))
}

// create stores an extraction and returns the arguments of its job.
func (b *bundle) create(t *testing.T) extract.Args {
	t.Helper()
	id, err := b.CreateExtraction(t.Context(), b.alice, hello)
	if err != nil {
		t.Fatal(err)
	}
	return extract.Args{Tenant: b.alice.Tenant, User: b.alice.User, Extraction: id}
}

// texts returns the memories of all users, in the order in which they were stored.
func (b *bundle) texts(t *testing.T) []string {
	t.Helper()
	rows, err := b.owner.Query(t.Context(), `select format('%s: %s %s %s %s', user_id, text, source, agent_id, metadata) from memories order by seq`)
	if err != nil {
		t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// want compares the memories with those of Alice that have these texts.
func (b *bundle) want(t *testing.T, texts ...string) {
	t.Helper()
	want := []string{}
	for _, text := range texts {
		want = append(want, fmt.Sprintf(`%d: %s mem0 planner {"user_id": "u"}`, b.alice.User, text))
	}
	if diff := cmp.Diff(want, b.texts(t)); diff != "" {
		t.Errorf("memories (-want +got):\n%s", diff)
	}
}

// ended checks that nothing of the messages is left, and the reason of a failure.
func (b *bundle) ended(t *testing.T, a extract.Args, failure string) {
	t.Helper()
	s, err := b.ExtractionState(t.Context(), b.alice, false, a.Extraction)
	if err != nil || s.FinishedAt.IsZero() || !strings.Contains(s.Failure, failure) || failure == "" && s.Failure != "" {
		t.Errorf("state %+v, %v, want one that has ended with %q", s, err, failure)
	}
	var left int
	if err := b.owner.QueryRow(t.Context(), `select count(*) from extractions where input is not null or facts is not null`).Scan(&left); err != nil || left > 0 {
		t.Errorf("%d rows with messages or facts are left, %v", left, err)
	}
}

const bergen = `["The user moved to Bergen.", "The user likes rain."]`

func TestExtraction(t *testing.T) {
	t.Parallel()
	asTheyAre := []string{"Hi, I moved to Bergen.", "How nice!"}
	facts := []string{"The user moved to Bergen.", "The user likes rain."}
	for name, test := range map[string]struct {
		status int
		answer string
		want   []string
		asked  int32
	}{
		"Facts":      {200, bergen, facts, 1},
		"CodeBlock":  {200, "```json\n" + bergen + "\n```", facts, 1},
		"Duplicates": {200, `["The user likes rain.","The user likes rain."]`, facts[1:], 1},
		"NoFacts":    {200, `[]`, nil, 1},
		"Prose":      {200, `The user moved to Bergen.`, asTheyAre, 3},
		"Object":     {200, `{"facts":[]}`, asTheyAre, 3},
		"Null":       {200, `null`, asTheyAre, 3},
		"Numbers":    {200, `[1]`, asTheyAre, 3},
		"NullFact":   {200, `[null]`, asTheyAre, 3},
		"Blank":      {200, `[" "]`, asTheyAre, 3},
		"Long":       {200, `["` + strings.Repeat("x", 1001) + `"]`, asTheyAre, 3},
		"Many":       {200, `["x"` + strings.Repeat(`,"x"`, 100) + `]`, asTheyAre, 3},
		"Empty":      {200, ``, asTheyAre, 3},
		"Refused":    {400, ``, asTheyAre, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.says(test.status, test.answer)
			a := b.create(t)
			if err := b.runner.Run(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			b.want(t, test.want...)
			b.ended(t, a, "")
			if got := b.asked.Load(); got != test.asked {
				t.Errorf("the model was asked %d times, want %d", got, test.asked)
			}
		})
	}
}

// The audit log records that messages were received, and each memory that a job stored.
func TestAudit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.says(200, bergen)
	a := b.create(t)
	if err := b.runner.Run(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	var got string
	err := b.owner.QueryRow(t.Context(), `select string_agg(verb, ' ' order by id) from audit_pending
		where verb = 'memory.create' or verb = 'memory.extract' and objects = array[$1]`, a.Extraction).Scan(&got)
	if want := "memory.extract memory.create memory.create"; err != nil || got != want {
		t.Errorf("audit records %q, %v, want %q", got, err, want)
	}
}

func TestUnavailableModel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := b.create(t)
	for _, status := range []int{401, 404, 429, 500} {
		b.says(status, "")
		if err := b.runner.Run(t.Context(), a); !fault.Is(err, fault.Unavailable) || strings.Contains(err.Error(), "sk-key") {
			t.Errorf("status %d: %v, want Unavailable", status, err)
		}
	}
	b.want(t)
	b.says(200, bergen)
	if err := b.runner.Run(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	b.want(t, "The user moved to Bergen.", "The user likes rain.")
}

// Without a model, also one that was removed meanwhile, messages are stored as they are.
func TestNoModel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := b.create(t)
	b.runner.Model = nil
	if err := b.runner.Run(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	b.want(t, "Hi, I moved to Bergen.", "How nice!")
	b.ended(t, a, "")
}

// interrupted fails before a memory is created.
type interrupted struct {
	extract.Memories
	before func(int) error
}

func (m interrupted) Create(ctx context.Context, who tenant.Identity, in memory.CreateInput) (memory.Created, error) {
	if err := m.before(in.Result.Index); err != nil {
		return memory.Created{}, err
	}
	return m.Memories.Create(ctx, who, in)
}

// A worker that dies after it saved the facts, or between two memories, is continued: the model
// is not asked again, also if it would answer differently, and each fact is stored once, also
// one that the user deleted meanwhile.
func TestRetry(t *testing.T) {
	t.Parallel()
	killed := errors.New("killed")
	for at, want := range map[int][]string{0: {"The user moved to Bergen.", "The user likes rain."}, 1: {"The user likes rain."}} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.says(200, bergen)
			a := b.create(t)
			b.runner.Memories = interrupted{b.memories, func(i int) error {
				if i == at {
					return killed
				}
				return nil
			}}
			if err := b.runner.Run(t.Context(), a); !errors.Is(err, killed) {
				t.Fatal(err)
			}
			if _, err := b.owner.Exec(t.Context(), "delete from memories"); err != nil {
				t.Fatal(err)
			}
			b.says(200, `["Something else."]`)
			b.runner.Memories = b.memories
			for range 2 {
				if err := b.runner.Run(t.Context(), a); err != nil {
					t.Fatal(err)
				}
			}
			b.want(t, want...)
			if got := b.asked.Load(); got != 1 {
				t.Errorf("the model was asked %d times", got)
			}
		})
	}
}

// A deletion of the account or of the user ends an extraction, also while a worker has read its facts.
func TestErasedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, erase := range map[string]func(context.Context, *bundle) error{
		"Account": func(ctx context.Context, b *bundle) error {
			cutoff, err := b.Accounts().BeginPurge(ctx, b.alice)
			if err == nil {
				_, err = account.Purge(ctx, b.Accounts(), b.alice, cutoff)
			}
			return err
		},
		"User":    func(ctx context.Context, b *bundle) error { return b.EraseUser(ctx, b.alice) },
		"Restore": func(ctx context.Context, b *bundle) error { return b.Erasures().BeginReplay(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.says(200, bergen)
			a := b.create(t)
			b.runner.Memories = interrupted{b.memories, func(int) error { return erase(t.Context(), b) }}
			if err := b.runner.Run(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			b.want(t)
			var left int
			if err := b.owner.QueryRow(t.Context(), "select count(*) from extractions").Scan(&left); err != nil || left > 0 {
				t.Errorf("%d extractions are left, %v", left, err)
			}
		})
	}
}

func TestQuotaEndsExtraction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.says(200, bergen)
	b.spec.Quota.Memories = 1
	if _, err := b.Apply(t.Context(), b.spec); err != nil {
		t.Fatal(err)
	}
	a := b.create(t)
	if err := b.runner.Run(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	b.want(t, "The user moved to Bergen.")
	b.ended(t, a, "1 of 2 facts were not stored: memory quota exceeded")
}

// Nobody else can read the state of an extraction, and no job of another user continues it.
func TestOtherUsers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.says(200, bergen)
	a := b.create(t)
	for _, other := range b.others {
		if err := b.runner.Run(t.Context(), extract.Args{Tenant: other.Tenant, User: other.User, Extraction: a.Extraction}); err != nil {
			t.Fatal(err)
		}
		for _, ofApplications := range []bool{false, true} {
			if s, err := b.ExtractionState(t.Context(), other, ofApplications, a.Extraction); !errors.Is(err, extract.ErrUnknown) {
				t.Errorf("state for another user: %+v, %v", s, err)
			}
		}
	}
	b.want(t)
	if got := b.asked.Load(); got != 0 {
		t.Errorf("the model was asked %d times", got)
	}
}

func TestTooManyExtractions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.owner.Exec(t.Context(), `insert into extractions (tenant_id, user_id, id, input)
		select $1, $2, gen_random_uuid(), '{}' from generate_series(1, $3)`, b.alice.Tenant, b.alice.User, extract.MaxPending)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.CreateExtraction(t.Context(), b.alice, hello); !errors.Is(err, extract.ErrTooMany) {
		t.Errorf("CreateExtraction = %v, want ErrTooMany", err)
	}
	if _, err := b.CreateExtraction(t.Context(), b.others[0], hello); err != nil {
		t.Errorf("another user: %v", err)
	}
}

func TestExpiredExtractions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.says(200, `[]`)
	kept, old := b.create(t), b.create(t)
	for _, a := range []extract.Args{kept, old} {
		if err := b.runner.Run(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.owner.Exec(t.Context(), "update extractions set finished_at = now() - interval '8 days' where id = $1", old.Extraction); err != nil {
		t.Fatal(err)
	}
	if err := b.ExpireRecords(t.Context(), b.alice.Tenant); err != nil {
		t.Fatal(err)
	}
	if _, err := b.ExtractionState(t.Context(), b.alice, false, old.Extraction); !errors.Is(err, extract.ErrUnknown) {
		t.Errorf("expired: %v", err)
	}
	b.ended(t, kept, "")
}

// The job that a request commits runs, and waits for an unavailable model.
func TestJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	config, err := jobs.Config(nil, b.DB, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := jobs.ExtractFacts(config, b.runner, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	config.PeriodicJobs = nil
	delete(config.Queues, queue.Recent) // no index jobs
	client, err := b.Jobs(config)
	if err != nil {
		t.Fatal(err)
	}
	b.handle.Store(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		b.says(200, bergen)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	a := b.create(t)
	if err := client.Start(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.StopAndCancel(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	for started := time.Now(); ; <-time.After(10 * time.Millisecond) {
		s, err := b.ExtractionState(t.Context(), b.alice, false, a.Extraction)
		if err != nil {
			t.Fatal(err)
		}
		if !s.FinishedAt.IsZero() {
			break
		}
		if time.Since(started) > 30*time.Second {
			t.Fatal("the job has not ended within 30s")
		}
	}
	b.want(t, "The user moved to Bergen.", "The user likes rain.")
}
