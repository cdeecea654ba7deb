package controllers

import (
	"crypto/rand"
	"io"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Config configures the operator. Zero values select the defaults.
type Config struct {
	// URL is the public URL of the API, written to users' Secrets.
	URL string
	// Cluster is the uid of the cluster. Default: the uid of namespace kube-system.
	Cluster string
	// Namespaces are the watched namespaces. Default: all.
	Namespaces []string
	// Selector selects the watched Tenants by label. The operators of an installation
	// must select each Tenant at most once. Default: all.
	Selector labels.Selector
	// Defaults are the quotas of a Tenant that does not set them. Default:
	// tenant.DefaultQuota.
	Defaults tenant.Quota
	// Maximum limits what a Tenant may set, field by field. Default: no limits.
	Maximum tenant.Quota
	// Resync is the interval at which a Tenant is reconciled without a change.
	// Default: 15 minutes.
	Resync time.Duration
	// PollChanges is the interval at which changes in the store are looked up, with one
	// query for all Tenants. Default: 2 seconds.
	PollChanges time.Duration
	// CheckIndex is the interval at which one Tenant of each collection of the index is
	// reconciled, so that a lost collection is found before the resync. Default: 1 minute.
	CheckIndex time.Duration
	// Poll is the interval at which a purge, migration or rebuild in progress is
	// checked. Default: 2 seconds.
	Poll time.Duration
	// Sweep is the interval of SweepOrphans. Default: 10 minutes.
	Sweep time.Duration
	// OrphanGrace is how long the data of an orphaned tenant with deletionPolicy
	// Delete is retained. Default: 24 hours.
	OrphanGrace time.Duration
	// SyncTimeout is how long the caches may take to sync at the start. Default: 2 minutes.
	SyncTimeout time.Duration
	// Workers is the number of Tenants reconciled concurrently. Default: 10.
	Workers int
	// Changes receives tenants that changed in the store, which are then reconciled
	// at once and not only when Stores.Changes finds them. An empty id means that some
	// may have been missed. Optional. It is read only by the leader, so senders must not
	// block.
	Changes <-chan tenant.ID

	// MetricsAddress and HealthAddress are the listen addresses for /metrics and
	// for /healthz and /readyz; "0" or empty disables them.
	MetricsAddress, HealthAddress string
	// LeaderElection makes only one of several replicas active.
	LeaderElection bool
	// LeaderElectionNamespace is the namespace of the lease. Default: the pod's.
	LeaderElectionNamespace string

	// Logger is the logger. Default: slog.Default().
	Logger *slog.Logger
	// WebhooksDisabled means that the API servers deliver no events, which Tenants with
	// webhooks report.
	WebhooksDisabled bool
	// Unindexed means that tenants are placed in no index. The store must be configured
	// so, too.
	Unindexed bool
	// CellsSecret is the Secret to which the connections of Cells are written. Their
	// credentials are in the same namespace. Default: Cells are not reconciled.
	CellsSecret types.NamespacedName
	// CellsSelector selects the Cells by label. Default: all.
	CellsSelector labels.Selector
	// DatabaseCell is that of the stores. Tokens carry it.
	DatabaseCell tenant.DatabaseCell
	// Random is the source of tokens, passwords and signing secrets. Default: crypto/rand.
	Random io.Reader
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	if c.Selector == nil {
		c.Selector = labels.Everything()
	}
	if c.CellsSelector == nil {
		c.CellsSelector = labels.Everything()
	}
	if c.Defaults == (tenant.Quota{}) {
		c.Defaults = tenant.DefaultQuota()
	}
	if c.Maximum == (tenant.Quota{}) {
		c.Maximum = tenant.Unlimited()
	}
	c.Resync = durationOr(c.Resync, 15*time.Minute)
	c.CheckIndex = durationOr(c.CheckIndex, time.Minute)
	c.PollChanges = durationOr(c.PollChanges, 2*time.Second)
	c.Poll = durationOr(c.Poll, 2*time.Second)
	c.Sweep = durationOr(c.Sweep, 10*time.Minute)
	c.OrphanGrace = durationOr(c.OrphanGrace, 24*time.Hour)
	c.SyncTimeout = durationOr(c.SyncTimeout, 2*time.Minute)
	if c.Workers <= 0 {
		c.Workers = 10
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// durationOr returns the default if a duration is not set.
func durationOr(d, byDefault time.Duration) time.Duration {
	if d <= 0 {
		return byDefault
	}
	return d
}
