package controllers

import (
	"crypto/rand"
	"io"
	"log/slog"
	"time"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Config is what the operator is told by its host. The zero value of a field
// that has a default takes it.
type Config struct {
	// URL is where users reach the API; it goes into their Secrets.
	URL string
	// Cluster is the uid of this cluster. Default: that of its kube-system namespace.
	Cluster string
	// Namespaces are those whose Tenants are served. Default: all.
	Namespaces []string
	// Defaults is the quota of what a Tenant leaves unsaid. Default: DefaultQuota.
	Defaults tenant.Quota
	// Resync is how often a Tenant is compared with the stores when nothing
	// said it changed. Default: a minute.
	Resync time.Duration
	// Poll is how often a purge, a move or a rebuilding in progress is looked
	// at. Default: 2 seconds.
	Poll time.Duration
	// Sweep is how often tenants are looked for whose Tenant went without being
	// let go. Default: 10 minutes.
	Sweep time.Duration
	// OrphanGrace is how long the data of such a tenant is kept when its policy
	// was Delete. Default: a day.
	OrphanGrace time.Duration
	// Workers is how many Tenants are reconciled at a time. Default: 4.
	Workers int
	// Changes says which tenants changed in the store, so that they are
	// reconciled before their resync. May be nil. It is read only while this
	// replica leads: a sender must not wait for it.
	Changes <-chan tenant.ID

	// MetricsAddress and HealthAddress are host:port to listen on; "0" or
	// empty for none. Health answers /healthz and /readyz.
	MetricsAddress, HealthAddress string
	// LeaderElection lets one of several replicas work at a time.
	LeaderElection bool
	// LeaderElectionNamespace holds the lease. Default: the pod's namespace.
	LeaderElectionNamespace string

	// Logger takes the logs. Default: slog.Default().
	Logger *slog.Logger
	// Random is where tokens come from. Default: crypto/rand.
	Random io.Reader
	// Now is the time. Default: time.Now.
	Now func() time.Time
}

// DefaultQuota is what a tenant may hold when neither its Tenant nor the
// operator's host says otherwise.
var DefaultQuota = tenant.Quota{
	Memories: 10_000, Conversations: 500, Storage: 10 << 30, Users: 50, RequestsPerMinute: 600,
	ListTokens: 25_000, UserMemories: tenant.NoLimit, UserConversations: tenant.NoLimit,
}

func (c Config) withDefaults() Config {
	if c.Defaults == (tenant.Quota{}) {
		c.Defaults = DefaultQuota
	}
	if c.Resync <= 0 {
		c.Resync = time.Minute
	}
	if c.Poll <= 0 {
		c.Poll = 2 * time.Second
	}
	if c.Sweep <= 0 {
		c.Sweep = 10 * time.Minute
	}
	if c.OrphanGrace <= 0 {
		c.OrphanGrace = 24 * time.Hour
	}
	if c.Workers <= 0 {
		c.Workers = 4
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
