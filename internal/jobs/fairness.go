package jobs

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/mnemo-dev/mnemo/internal/queue"
)

// turnTimeout bounds how long the end of a job is delayed.
const turnTimeout = 5 * time.Second

// turnLength is the number of jobs of a tenant's turn in a queue, and the shortest time
// between the beginnings of turns on a replica.
type turnLength struct {
	jobs  int
	every time.Duration
}

// turnLengths contains the queues with turns. Small jobs are so many that not each of
// them can begin turns.
var turnLengths = map[string]turnLength{
	queue.Recent:      {recentWorkers, 100 * time.Millisecond},
	queue.Backlog:     {jobs: 1},
	queue.Imports:     {jobs: 1},
	queue.Purges:      {jobs: 1},
	queue.Placements:  {jobs: 1},
	queue.Webhooks:    {jobs: 1},
	queue.Extractions: {jobs: 1},
}

// Fairness divides the workers of a queue among tenants. postgres.DB implements it.
type Fairness interface {
	// PromoteJobs gives a turn to tenants with queued jobs and no running ones: their
	// oldest jobs run before all jobs without a turn. If very many tenants wait, it gives one to some
	// of them. The turn of the job that ends is over.
	PromoteJobs(ctx context.Context, queue string, perTenant int, ended int64) error
}

// turns is the middleware that begins the next turns when a job ends, before the worker
// fetches another one: a tenant with many jobs does not delay those of other tenants.
type turns struct {
	river.MiddlewareDefaults
	fairness Fairness
	log      *slog.Logger

	mu   sync.Mutex
	last map[string]time.Time // of each queue
}

func newTurns(fairness Fairness, log *slog.Logger) *turns {
	return &turns{fairness: fairness, log: log, last: map[string]time.Time{}}
}

// Work implements rivertype.WorkerMiddleware.
func (m *turns) Work(ctx context.Context, job *rivertype.JobRow, do func(context.Context) error) error {
	defer m.begin(ctx, job)
	return do(ctx)
}

// begin begins the next turns of the queue of a job that ends, unless they began recently.
func (m *turns) begin(ctx context.Context, ended *rivertype.JobRow) {
	length, ok := turnLengths[ended.Queue]
	if !ok || !m.due(ended.Queue, length.every) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), turnTimeout)
	defer cancel()
	if err := m.fairness.PromoteJobs(ctx, ended.Queue, length.jobs, ended.ID); err != nil {
		m.log.WarnContext(ctx, "tenant fairness unavailable; running jobs in creation order", "queue", ended.Queue, "error", err)
	}
}

func (m *turns) due(name string, every time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := time.Now(); now.Sub(m.last[name]) >= every {
		m.last[name] = now
		return true
	}
	return false
}
