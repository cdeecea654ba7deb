package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// EmbeddingStats describe the migration to another embedding model; zero without one.
type EmbeddingStats struct {
	// Idle is the time since the latest progress of an unfinished migration.
	Idle time.Duration
	// RolledBack reports that the latest migration was rolled back within a day.
	RolledBack bool
	// CanaryPercent of the users are served with the next model; 100 afterwards.
	CanaryPercent int
	// Pending, Ready and Migrated count tenants: to copy, copied and migrated.
	Pending, Ready, Migrated int64
	// Previous and Next are the scores of both models.
	Previous, Next float64
}

var (
	embeddingIdleDesc       = prometheus.NewDesc("mnemo_embedding_migration_idle_seconds", "Time since the latest progress of the migration to another embedding model; 0 without an unfinished one.", nil, nil)
	embeddingRolledBackDesc = prometheus.NewDesc("mnemo_embedding_migration_rolled_back", "1 if the latest migration to another embedding model was rolled back within a day.", nil, nil)
	embeddingCanaryDesc     = prometheus.NewDesc("mnemo_embedding_migration_users_percent", "Percentage of users that are served with the next embedding model.", nil, nil)
	embeddingTenantsDesc    = prometheus.NewDesc("mnemo_embedding_migration_tenants", "Tenants of the migration to another embedding model, by state: pending, ready or migrated.", []string{"state"}, nil)
	embeddingScoreDesc      = prometheus.NewDesc("mnemo_embedding_migration_score", "Share of texts that are found by a part of them, by embedding model: previous or next.", []string{"model"}, nil)
)

func describeEmbeddings(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{embeddingIdleDesc, embeddingRolledBackDesc, embeddingCanaryDesc, embeddingTenantsDesc, embeddingScoreDesc} {
		out <- d
	}
}

func (s EmbeddingStats) collect(gauge func(d *prometheus.Desc, v float64, labels ...string)) {
	gauge(embeddingIdleDesc, s.Idle.Seconds())
	rolledBack := 0.0
	if s.RolledBack {
		rolledBack = 1
	}
	gauge(embeddingRolledBackDesc, rolledBack)
	gauge(embeddingCanaryDesc, float64(s.CanaryPercent))
	gauge(embeddingTenantsDesc, float64(s.Pending), "pending")
	gauge(embeddingTenantsDesc, float64(s.Ready), "ready")
	gauge(embeddingTenantsDesc, float64(s.Migrated), "migrated")
	gauge(embeddingScoreDesc, s.Previous, "previous")
	gauge(embeddingScoreDesc, s.Next, "next")
}
