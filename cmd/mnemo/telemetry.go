package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/reembed"
	"github.com/mnemo-dev/mnemo/internal/telemetry"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// telemetryFlags configure metrics and traces.
type telemetryFlags struct {
	telemetry.TraceConfig
	MetricsTenants     int  `env:"MNEMO_METRICS_TENANTS" default:"100" help:"Maximum number of tenants in the quota metrics, highest relative usage first; 0 for none."`
	MetricsTenantNames bool `env:"MNEMO_METRICS_TENANT_NAMES" help:"Identify tenants in metrics by namespace and name instead of ID. Everyone who can read the metrics can then read the names."`
}

// newMetrics returns a registry with the metrics of this process.
func newMetrics() (*prometheus.Registry, *telemetry.Metrics) {
	registry := prometheus.NewRegistry()
	telemetry.RegisterProcess(registry)
	return registry, telemetry.NewMetrics(registry)
}

// watch registers the database statistics and checks the stores periodically
// until the context ends.
func (f telemetryFlags) watch(ctx context.Context, s *stores, r prometheus.Registerer, m *telemetry.Metrics, log *slog.Logger) error {
	if err := f.register(s, r, log); err != nil {
		return err
	}
	checks := map[string]func(context.Context) error{"postgresql": s.db.Ping}
	if index := s.milvus(); index != nil {
		checks["milvus"] = index.Ping
	}
	go m.Watch(ctx, checks, log)
	return nil
}

// register registers the database statistics.
func (f telemetryFlags) register(s *stores, r prometheus.Registerer, log *slog.Logger) error {
	return r.Register(telemetry.NewStoreCollector(func(ctx context.Context) (telemetry.StoreStats, error) {
		stats, err := s.db.Stats(ctx, f.MetricsTenants)
		if err != nil {
			return telemetry.StoreStats{}, err
		}
		out := f.storeStats(stats)
		m, err := s.db.LatestEmbeddingMigration(ctx)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return telemetry.StoreStats{}, err
		}
		out.Embeddings = embeddingStats(m, time.Now())
		return out, nil
	}, func() telemetry.PoolStats { return telemetry.PoolStats(s.db.Pool()) }, log))
}

// embeddingStats describes a migration, which is zero if there was none.
func embeddingStats(m reembed.Migration, now time.Time) telemetry.EmbeddingStats {
	out := telemetry.EmbeddingStats{Previous: m.Scores.Source, Next: m.Scores.Target}
	switch m.Phase {
	case reembed.Canary:
		out.CanaryPercent = m.CanaryPercent
	case reembed.Completing, reembed.Completed:
		out.CanaryPercent = 100
	case reembed.RollingBack:
		out.RolledBack = true
	case reembed.RolledBack:
		out.RolledBack = now.Sub(m.FinishedAt) < 24*time.Hour
	case reembed.Copying:
	}
	if m.ID != 0 && !m.Phase.Finished() {
		out.Idle = m.Idle
		out.Pending, out.Ready, out.Migrated = m.Pending, m.Ready, m.Migrated
	}
	return out
}

func (f telemetryFlags) storeStats(s postgres.Stats) telemetry.StoreStats {
	out := telemetry.StoreStats{IndexLag: s.IndexLag, SweepAge: s.SweepAge, DriftedSweeps: s.DriftedSweeps, ErasureLag: s.ErasureLag, BlockedConversations: s.Blocked,
		UnsealedRecords: s.Unsealed.Records, UnsealedAge: s.Unsealed.Oldest, FailingWebhooks: s.Webhooks.Failing, DisabledWebhooks: s.Webhooks.Disabled,
		FailingWebhookTenants: s.Webhooks.FailingTenants, DeliveringWebhookTenants: s.Webhooks.DeliveringTenants}
	for _, j := range s.Jobs {
		out.Jobs = append(out.Jobs, telemetry.JobStats(j))
	}
	for _, t := range s.Tenants {
		label := string(t.ID)
		if f.MetricsTenantNames {
			label = t.Namespace + "/" + t.Name
		}
		stats := telemetry.TenantStats{Tenant: label, Blocked: t.Usage.Blocked, Used: map[string]int64{}, Hard: map[string]int64{}}
		for _, r := range tenant.Resources {
			if r.Used != nil {
				stats.Used[r.Name], stats.Hard[r.Name] = r.Used(&t.Usage), *r.Limit(&t.Hard)
			}
		}
		out.Tenants = append(out.Tenants, stats)
	}
	return out
}
