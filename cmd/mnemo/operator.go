//go:build !nokubernetes

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/telemetry"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// kubernetesCommands are the commands that use the Kubernetes API.
type kubernetesCommands struct {
	Operator     operatorCommand     `cmd:"" help:"Run the operator."`
	PreUninstall preUninstallCommand `cmd:"" help:"Prepare to uninstall: fail while Tenants exist, or remove their finalizers."`
}

type operatorCommand struct {
	databaseFlags
	milvusFlags
	embedderFlags
	URL                     string            `env:"MNEMO_URL" required:"" help:"URL at which users reach the API; written to their Secrets."`
	WatchNamespaces         []string          `env:"MNEMO_WATCH_NAMESPACES" help:"Namespaces to watch. Default: all."`
	WatchLabelSelector      string            `env:"MNEMO_WATCH_LABEL_SELECTOR" help:"Label selector of the Tenants to reconcile, to shard them over several operators. Default: all."`
	LeaderElect             bool              `env:"MNEMO_LEADER_ELECT" help:"Enable leader election, for more than one replica."`
	LeaderElectionNamespace string            `env:"MNEMO_LEADER_ELECTION_NAMESPACE" help:"Namespace of the leader election lease. Default: the pod's."`
	MetricsListen           string            `env:"MNEMO_METRICS_LISTEN" default:":9090" help:"Address of the metrics server, host:port; 0 to disable it."`
	CellsSecret             string            `env:"MNEMO_CELLS_SECRET" placeholder:"NAMESPACE/NAME" help:"Enables Cells: the Secret, as namespace/name, to which the connections of Cells are written. Their credentials are in the same namespace."`
	CellsSelector           string            `env:"MNEMO_CELLS_SELECTOR" help:"Label selector of the Cells of this installation. Default: all."`
	OrphanGrace             time.Duration     `env:"MNEMO_ORPHAN_GRACE" default:"24h" help:"How long the data of a Tenant with deletionPolicy Delete is kept if the Tenant was deleted while no operator was running."`
	Workers                 int               `env:"MNEMO_WORKERS" default:"10" help:"Tenants reconciled concurrently. Each worker uses up to two connections to PostgreSQL."`
	Resync                  time.Duration     `env:"MNEMO_RESYNC" default:"15m" help:"Interval at which every Tenant is compared with PostgreSQL and Milvus. Changes in PostgreSQL are found within seconds."`
	DefaultQuota            defaultQuotaFlags `embed:"" prefix:"default-quota-" envprefix:"MNEMO_DEFAULT_QUOTA_"`
	MaxQuota                maxQuotaFlags     `embed:"" prefix:"max-quota-" envprefix:"MNEMO_MAX_QUOTA_"`
	Webhooks                bool              `env:"MNEMO_WEBHOOKS" help:"Webhooks are enabled in the API servers. Otherwise, the status of Tenants with webhooks says that they are disabled."`
	HealthListen            string            `env:"MNEMO_HEALTH_LISTEN" default:":8081" help:"Address of the health probes /healthz and /readyz, host:port; 0 to disable them."`
}

// operatorGarbagePercent is the default GOGC. The heap is mostly cached Tenants and
// Secrets, and the operator allocates little, so frequent collections are cheap.
const operatorGarbagePercent = 70

// Run reconciles Tenants until the context ends.
func (c *operatorCommand) Run(ctx context.Context, log *slog.Logger) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(operatorGarbagePercent)
	}
	limitMemory(ctx, memlimit.FromCgroup, defaultMemoryRatio, log)
	cluster, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("load cluster configuration (set KUBECONFIG, or run in a pod): %w", err)
	}
	g, err := c.generation()
	if err != nil {
		return err
	}
	s, err := openStores(ctx, c.databaseFlags, c.milvusFlags, g, log)
	if err != nil {
		return err
	}
	defer s.close()
	if err := ctrlmetrics.Registry.Register(telemetry.BuildInfo()); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	changes := make(chan tenant.ID, maxPendingChanges)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return s.db.ListenTenants(ctx, func(id tenant.ID) {
			select {
			case changes <- id:
			default: // ChangeReader finds it
			}
		})
	})
	group.Go(func() error { return c.reconcile(ctx, cluster, s, changes, log) })
	return group.Wait()
}

// maxPendingChanges bounds the tenants that wait for an early reconciliation, for
// example while this replica is not the leader.
const maxPendingChanges = 1000

func (c *operatorCommand) reconcile(ctx context.Context, cluster *rest.Config, s *stores, changes <-chan tenant.ID, log *slog.Logger) error {
	defaults, err := c.DefaultQuota.quota()
	if err != nil {
		return err
	}
	maximum, err := c.MaxQuota.quota()
	if err != nil {
		return err
	}
	if err := checkDefaults(defaults, maximum); err != nil {
		return err
	}
	selector, err := labels.Parse(c.WatchLabelSelector)
	if err != nil {
		return fmt.Errorf("--watch-label-selector must be a label selector such as mnemo.dev/shard=a: %w", err)
	}
	cells, err := c.cellsSecret()
	if err != nil {
		return err
	}
	cellsSelector, err := labels.Parse(c.CellsSelector)
	if err != nil {
		return fmt.Errorf("--cells-selector must be a label selector: %w", err)
	}
	return controllers.Run(ctx, cluster, controllers.Config{
		CellsSecret: cells, CellsSelector: cellsSelector,
		Defaults: defaults, Maximum: maximum, Selector: selector,
		URL: c.URL, Namespaces: c.WatchNamespaces, Changes: changes,
		MetricsAddress: c.MetricsListen, HealthAddress: c.HealthListen,
		LeaderElection: c.LeaderElect, LeaderElectionNamespace: c.LeaderElectionNamespace,
		OrphanGrace: c.OrphanGrace, Resync: c.Resync, Workers: c.Workers, WebhooksDisabled: !c.Webhooks, Unindexed: c.unindexed(), DatabaseCell: s.db.DatabaseCell(), Logger: log,
	}, controllers.Stores{Tenants: s.db, Tokens: s.db, Records: s.db, Webhooks: s.db, Partitions: s.index, Cells: s.db, CellPinger: s.index, Changes: s.db.ChangeReader()})
}

func (c *operatorCommand) cellsSecret() (types.NamespacedName, error) {
	secret, ok := parseNamespacedName(c.CellsSecret)
	if c.CellsSecret != "" && (!ok || c.CellsDir == "") {
		return types.NamespacedName{}, errors.New("--cells-secret must be namespace/name, and requires --cells-dir, where that Secret is mounted")
	}
	return secret, nil
}
