package main

import (
	"context"
	"fmt"
	"log/slog"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/mnemo-dev/mnemo/controllers"
)

type operatorCommand struct {
	databaseFlags
	milvusFlags
	embedderFlags
	URL                     string   `env:"MNEMO_URL" required:"" help:"Where users reach the API; it goes into their Secrets."`
	WatchNamespaces         []string `env:"MNEMO_WATCH_NAMESPACES" help:"Namespaces whose Tenants are served. Default: all."`
	LeaderElect             bool     `env:"MNEMO_LEADER_ELECT" help:"Let one of several replicas work at a time."`
	LeaderElectionNamespace string   `env:"MNEMO_LEADER_ELECTION_NAMESPACE" help:"Namespace of the lease. Default: the pod's."`
	MetricsListen           string   `env:"MNEMO_METRICS_LISTEN" default:":9090" help:"host:port to answer /metrics on; 0 for none."`
	HealthListen            string   `env:"MNEMO_HEALTH_LISTEN" default:":8081" help:"host:port to answer /healthz and /readyz on; 0 for none."`
}

// Run reconciles Tenants until the context ends.
func (c *operatorCommand) Run(ctx context.Context, log *slog.Logger) error {
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
	return controllers.Run(ctx, cluster, controllers.Config{
		URL: c.URL, Namespaces: c.WatchNamespaces,
		MetricsAddress: c.MetricsListen, HealthAddress: c.HealthListen,
		LeaderElection: c.LeaderElect, LeaderElectionNamespace: c.LeaderElectionNamespace,
		Logger: log,
	}, s.db, s.db, s.index)
}
