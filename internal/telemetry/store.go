package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// StoreStats is what the database knows of everything, whichever replica is
// asked: rules and dashboards take the largest of them.
type StoreStats struct {
	Jobs    []JobStats
	Tenants []TenantStats
	// IndexLag is the age of the oldest change that is not in the vector store.
	IndexLag time.Duration
	// BlockedConversations are kept beyond quotas, over all tenants.
	BlockedConversations int64
}

// JobStats are the jobs of a kind that are not done.
type JobStats struct {
	Kind            string
	Queued, Running int64
	Oldest          time.Duration // since the oldest of them could have been done
}

// TenantStats is what a tenant holds of what it may hold, by resource.
type TenantStats struct {
	Tenant     string // namespace/name
	Used, Hard map[string]int64
	Blocked    int64 // conversations beyond the quota
}

// PoolStats are a process' connections to the database.
type PoolStats struct {
	Used, Idle, Max int32
	Waits           int64         // acquisitions that had to wait
	Waited          time.Duration // all of them together
}

// statsLife is how long an answer is used again, and statsTimeout how long one
// is waited for.
const (
	statsLife    = 5 * time.Second
	statsTimeout = 3 * time.Second
)

var (
	jobsDesc      = prometheus.NewDesc("mnemo_jobs", "Jobs that are not done, by kind and state: queued or running.", []string{"kind", "state"}, nil)
	oldestDesc    = prometheus.NewDesc("mnemo_job_oldest_seconds", "Age of the oldest job that is not done, by kind.", []string{"kind"}, nil)
	lagDesc       = prometheus.NewDesc("mnemo_index_lag_seconds", "Age of the oldest change that is not in the vector store.", nil, nil)
	usedDesc      = prometheus.NewDesc("mnemo_tenant_quota_used", "What a tenant holds, of the tenants nearest to their quotas.", []string{"tenant", "resource"}, nil)
	hardDesc      = prometheus.NewDesc("mnemo_tenant_quota_hard", "What a tenant may hold.", []string{"tenant", "resource"}, nil)
	blockedDesc   = prometheus.NewDesc("mnemo_tenant_blocked_conversations", "Conversations of a tenant that are kept beyond its quota.", []string{"tenant"}, nil)
	allBlocked    = prometheus.NewDesc("mnemo_blocked_conversations", "Conversations kept beyond quotas, over all tenants.", nil, nil)
	poolDesc      = prometheus.NewDesc("mnemo_database_connections", "Connections of this process to PostgreSQL, by state: used or idle.", []string{"state"}, nil)
	poolMaxDesc   = prometheus.NewDesc("mnemo_database_connections_max", "Most connections of this process to PostgreSQL.", nil, nil)
	poolWaitsDesc = prometheus.NewDesc("mnemo_database_connection_waits_total", "Times a request or job had to wait for a connection.", nil, nil)
	poolWaitDesc  = prometheus.NewDesc("mnemo_database_connection_wait_seconds_total", "Time spent waiting for connections.", nil, nil)
)

// StoreCollector asks the database when Prometheus asks. While the database is
// away it says nothing of what that knows, so that a gap is seen and not a zero;
// of the connections it always does: when none is left, nobody can ask.
type StoreCollector struct {
	ask  func(context.Context) (StoreStats, error)
	pool func() PoolStats
	log  *slog.Logger

	mu    sync.Mutex
	last  StoreStats
	until time.Time
}

// NewStoreCollector makes a collector.
func NewStoreCollector(ask func(context.Context) (StoreStats, error), pool func() PoolStats, log *slog.Logger) *StoreCollector {
	return &StoreCollector{ask: ask, pool: pool, log: log}
}

// Describe implements prometheus.Collector.
func (c *StoreCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{jobsDesc, oldestDesc, lagDesc, usedDesc, hardDesc, blockedDesc, allBlocked, poolDesc, poolMaxDesc, poolWaitsDesc, poolWaitDesc} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *StoreCollector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	p := c.pool() // before we take one ourselves
	gauge(poolDesc, float64(p.Used), "used")
	gauge(poolDesc, float64(p.Idle), "idle")
	gauge(poolMaxDesc, float64(p.Max))
	out <- prometheus.MustNewConstMetric(poolWaitsDesc, prometheus.CounterValue, float64(p.Waits))
	out <- prometheus.MustNewConstMetric(poolWaitDesc, prometheus.CounterValue, p.Waited.Seconds())
	s, ok := c.stats()
	if !ok {
		return
	}
	for _, j := range s.Jobs {
		gauge(jobsDesc, float64(j.Queued), j.Kind, "queued")
		gauge(jobsDesc, float64(j.Running), j.Kind, "running")
		gauge(oldestDesc, j.Oldest.Seconds(), j.Kind)
	}
	gauge(lagDesc, s.IndexLag.Seconds())
	for _, t := range s.Tenants {
		for resource, n := range t.Used {
			gauge(usedDesc, float64(n), t.Tenant, resource)
			gauge(hardDesc, float64(t.Hard[resource]), t.Tenant, resource)
		}
		gauge(blockedDesc, float64(t.Blocked), t.Tenant)
	}
	gauge(allBlocked, float64(s.BlockedConversations))
}

func (c *StoreCollector) stats() (StoreStats, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Before(c.until) {
		return c.last, true
	}
	ctx, cancel := context.WithTimeout(context.Background(), statsTimeout)
	defer cancel()
	s, err := c.ask(ctx)
	if err != nil {
		c.log.WarnContext(ctx, "metrics without what the database knows", "error", err)
		return StoreStats{}, false
	}
	c.last, c.until = s, time.Now().Add(statsLife)
	return s, true
}
