package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// StoreStats are statistics from the database. Every replica exports the same
// ones, so rules and dashboards use max and never sum.
type StoreStats struct {
	Jobs    []JobStats
	Tenants []TenantStats
	// IndexLag is the age of the oldest change that is not in the vector index.
	IndexLag time.Duration
	// SweepAge is the age of the oldest complete sweep of a tenant.
	SweepAge time.Duration
	// DriftedSweeps are the consecutive sweeps with drift of the tenant with the most.
	DriftedSweeps int
	ErasureLag    time.Duration
	// UnsealedRecords are the audit records that are not sealed yet, and UnsealedAge is the
	// age of the oldest.
	UnsealedRecords int64
	UnsealedAge     time.Duration
	// FailingWebhooks have failed for more than 15 minutes; DisabledWebhooks are not tried any more.
	FailingWebhooks, DisabledWebhooks int64
	// FailingWebhookTenants have a failing webhook; DeliveringWebhookTenants are the others with webhooks that are not disabled.
	FailingWebhookTenants, DeliveringWebhookTenants int64
	Embeddings                                      EmbeddingStats
	// BlockedConversations are the conversations over quota of all tenants.
	BlockedConversations int64
}

// JobStats are the unfinished jobs of a kind.
type JobStats struct {
	Kind            string
	Queued, Running int64
	Oldest          time.Duration // since the oldest of them became due
}

// TenantStats are a tenant's usage and quotas, by resource.
type TenantStats struct {
	Tenant     string // ID, or namespace/name
	Used, Hard map[string]int64
	Blocked    int64 // conversations over quota
}

// PoolStats are the process' connections to the database.
type PoolStats struct {
	Used, Idle, Max int32
	Waits           int64         // acquisitions that had to wait
	Waited          time.Duration // total of all waits
}

// statsLife is how long statistics are reused. statsTimeout bounds the query.
const (
	statsLife    = 5 * time.Second
	statsTimeout = 3 * time.Second
)

var (
	jobsDesc          = prometheus.NewDesc("mnemo_jobs", "Unfinished jobs, by kind and state: queued or running.", []string{"kind", "state"}, nil)
	oldestDesc        = prometheus.NewDesc("mnemo_job_oldest_age_seconds", "Age of the oldest unfinished job, by kind.", []string{"kind"}, nil)
	lagDesc           = prometheus.NewDesc("mnemo_index_lag_seconds", "Age of the oldest change that is not in the vector index.", nil, nil)
	sweepAgeDesc      = prometheus.NewDesc("mnemo_index_sweep_oldest_age_seconds", "Time since the vector index of a tenant was last compared with the database, for the tenant that was not compared for longest.", nil, nil)
	driftedDesc       = prometheus.NewDesc("mnemo_index_drift_consecutive_sweeps", "Consecutive sweeps of a tenant that found units lost from the vector index or orphaned in it, for the tenant with the most.", nil, nil)
	erasureLagDesc    = prometheus.NewDesc("mnemo_erasure_ledger_lag_seconds", "Age of the oldest erasure or revocation that is not in the erasure ledger.", nil, nil)
	unsealedDesc      = prometheus.NewDesc("mnemo_audit_unsealed_records", "Audit records that are not sealed in the hash chain of their tenant.", nil, nil)
	unsealedAgeDesc   = prometheus.NewDesc("mnemo_audit_unsealed_oldest_age_seconds", "Age of the oldest audit record that is not sealed.", nil, nil)
	webhooksDesc      = prometheus.NewDesc("mnemo_webhooks", "Failing webhooks of all tenants, by state: failing for more than 15 minutes, or disabled after the last attempt.", []string{"state"}, nil)
	hookTenantsDesc   = prometheus.NewDesc("mnemo_webhook_tenants", "Tenants with webhooks that are not disabled, by state: failing if one has failed for more than 15 minutes, otherwise delivering.", []string{"state"}, nil)
	usedDesc          = prometheus.NewDesc("mnemo_tenant_quota_used", "Usage of a quota, for the tenants with the highest relative usage.", []string{"tenant", "resource"}, nil)
	limitDesc         = prometheus.NewDesc("mnemo_tenant_quota_limit", "Quota of a tenant, for the tenants with the highest relative usage.", []string{"tenant", "resource"}, nil)
	tenantBlockedDesc = prometheus.NewDesc("mnemo_tenant_blocked_conversations", "Conversations of a tenant that are stored but not searchable because they are over quota.", []string{"tenant"}, nil)
	blockedDesc       = prometheus.NewDesc("mnemo_blocked_conversations", "Conversations of all tenants that are stored but not searchable because they are over quota.", nil, nil)
	poolDesc          = prometheus.NewDesc("mnemo_database_connections", "Connections in the pool to PostgreSQL, by state: used or idle.", []string{"state"}, nil)
	poolMaxDesc       = prometheus.NewDesc("mnemo_database_connections_max", "Maximum number of connections in the pool to PostgreSQL.", nil, nil)
	poolWaitsDesc     = prometheus.NewDesc("mnemo_database_connection_waits_total", "Acquisitions that waited for a connection to PostgreSQL.", nil, nil)
	poolWaitDesc      = prometheus.NewDesc("mnemo_database_connection_wait_seconds_total", "Time spent waiting for a connection to PostgreSQL.", nil, nil)
)

// StoreCollector queries the database when Prometheus scrapes. While the
// database is unavailable it exports no statistics, which shows as a gap rather
// than as zeros. Pool metrics are always exported, because an exhausted pool is
// one reason why the query fails.
type StoreCollector struct {
	query func(context.Context) (StoreStats, error)
	pool  func() PoolStats
	log   *slog.Logger

	mu    sync.Mutex
	last  StoreStats
	until time.Time
}

// NewStoreCollector returns a collector.
func NewStoreCollector(query func(context.Context) (StoreStats, error), pool func() PoolStats, log *slog.Logger) *StoreCollector {
	return &StoreCollector{query: query, pool: pool, log: log}
}

// Describe implements prometheus.Collector.
func (c *StoreCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		jobsDesc, oldestDesc, lagDesc, sweepAgeDesc, driftedDesc, erasureLagDesc, unsealedDesc, unsealedAgeDesc, webhooksDesc, hookTenantsDesc, usedDesc, limitDesc, tenantBlockedDesc, blockedDesc, poolDesc, poolMaxDesc, poolWaitsDesc, poolWaitDesc,
	} {
		out <- d
	}
	describeEmbeddings(out)
}

// Collect implements prometheus.Collector.
func (c *StoreCollector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	p := c.pool() // before the query takes a connection
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
	gauge(sweepAgeDesc, s.SweepAge.Seconds())
	gauge(driftedDesc, float64(s.DriftedSweeps))
	gauge(erasureLagDesc, s.ErasureLag.Seconds())
	gauge(unsealedDesc, float64(s.UnsealedRecords))
	gauge(unsealedAgeDesc, s.UnsealedAge.Seconds())
	gauge(webhooksDesc, float64(s.FailingWebhooks), "failing")
	gauge(webhooksDesc, float64(s.DisabledWebhooks), "disabled")
	gauge(hookTenantsDesc, float64(s.FailingWebhookTenants), "failing")
	gauge(hookTenantsDesc, float64(s.DeliveringWebhookTenants), "delivering")
	s.Embeddings.collect(gauge)
	for _, t := range s.Tenants {
		for resource, n := range t.Used {
			gauge(usedDesc, float64(n), t.Tenant, resource)
			gauge(limitDesc, float64(t.Hard[resource]), t.Tenant, resource)
		}
		gauge(tenantBlockedDesc, float64(t.Blocked), t.Tenant)
	}
	gauge(blockedDesc, float64(s.BlockedConversations))
}

func (c *StoreCollector) stats() (StoreStats, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Before(c.until) {
		return c.last, true
	}
	ctx, cancel := context.WithTimeout(context.Background(), statsTimeout)
	defer cancel()
	s, err := c.query(ctx)
	if err != nil {
		c.log.WarnContext(ctx, "query database statistics for metrics failed", "error", err)
		return StoreStats{}, false
	}
	c.last, c.until = s, time.Now().Add(statsLife)
	return s, true
}
