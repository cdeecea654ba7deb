package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/telemetry"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

type operatorCommand struct {
	databaseFlags
	milvusFlags
	embedderFlags
	URL                     string            `env:"MNEMO_URL" required:"" help:"Where users reach the API; it goes into their Secrets."`
	WatchNamespaces         []string          `env:"MNEMO_WATCH_NAMESPACES" help:"Namespaces whose Tenants are served. Default: all."`
	LeaderElect             bool              `env:"MNEMO_LEADER_ELECT" help:"Let one of several replicas work at a time."`
	LeaderElectionNamespace string            `env:"MNEMO_LEADER_ELECTION_NAMESPACE" help:"Namespace of the lease. Default: the pod's."`
	MetricsListen           string            `env:"MNEMO_METRICS_LISTEN" default:":9090" help:"host:port to answer /metrics on; 0 for none."`
	OrphanGrace             time.Duration     `env:"MNEMO_ORPHAN_GRACE" default:"24h" help:"How long the data of a tenant is kept whose Tenant, with deletionPolicy Delete, went without being let go."`
	Resync                  time.Duration     `env:"MNEMO_RESYNC" default:"1m" help:"How often a Tenant is compared with PostgreSQL and Milvus when nothing said that it changed."`
	DefaultQuota            defaultQuotaFlags `embed:"" prefix:"default-quota-" envprefix:"MNEMO_DEFAULT_QUOTA_"`
	HealthListen            string            `env:"MNEMO_HEALTH_LISTEN" default:":8081" help:"host:port to answer /healthz and /readyz on; 0 for none."`
}

// operatorGarbagePercent is how much garbage may be held beside what is in use.
// Most of that is Tenants and Secrets that stay, and little is made anew.
const operatorGarbagePercent = 70

// Run reconciles Tenants until the context ends.
func (c *operatorCommand) Run(ctx context.Context, log *slog.Logger) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(operatorGarbagePercent)
	}
	cluster, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the cluster (set KUBECONFIG, or run in a pod): %w", err)
	}
	g, err := c.generation()
	if err != nil {
		return err
	}
	s, err := openStores(ctx, c.databaseFlags, c.milvusFlags, g)
	if err != nil {
		return err
	}
	defer s.close()
	if err := ctrlmetrics.Registry.Register(telemetry.BuildInfo()); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	changes := make(chan tenant.ID, changesAhead)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return s.db.ListenTenants(ctx, func(id tenant.ID) {
			select {
			case changes <- id:
			default: // the resync finds it
			}
		})
	})
	group.Go(func() error { return c.reconcile(ctx, cluster, s, changes, log) })
	return group.Wait()
}

// changesAhead is how many tenants may wait to be looked at before their time,
// among others while this replica does not lead.
const changesAhead = 1000

func (c *operatorCommand) reconcile(ctx context.Context, cluster *rest.Config, s *stores, changes <-chan tenant.ID, log *slog.Logger) error {
	quota, err := c.DefaultQuota.quota()
	if err != nil {
		return err
	}
	return controllers.Run(ctx, cluster, controllers.Config{
		Defaults: quota,
		URL:      c.URL, Namespaces: c.WatchNamespaces, Changes: changes,
		MetricsAddress: c.MetricsListen, HealthAddress: c.HealthListen,
		LeaderElection: c.LeaderElect, LeaderElectionNamespace: c.LeaderElectionNamespace,
		OrphanGrace: c.OrphanGrace, Resync: c.Resync, Logger: log,
	}, controllers.Stores{Tenants: s.db, Tokens: s.db, Records: s.db, Partitions: s.index})
}
