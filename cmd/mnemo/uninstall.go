package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/mnemo-dev/mnemo/controllers"
)

type preUninstallCommand struct {
	ReleaseTenants     bool          `env:"MNEMO_RELEASE_TENANTS" help:"Stop the operator and remove the finalizers of all Tenants. Their data stays in the stores."`
	OperatorDeployment string        `env:"MNEMO_OPERATOR_DEPLOYMENT" help:"namespace/name of the operator's Deployment, which is scaled to 0 first."`
	WatchNamespaces    []string      `env:"MNEMO_WATCH_NAMESPACES" help:"Namespaces the operator watches. Default: all."`
	Cells              bool          `env:"MNEMO_CELLS" help:"Also remove the finalizers of Cells."`
	CellsSelector      string        `env:"MNEMO_CELLS_SELECTOR" help:"Label selector of the Cells of this installation. Default: all."`
	Timeout            time.Duration `default:"3m" help:"How long to wait for the operator to stop."`
}

// Run fails while Tenants exist, or removes their finalizers.
func (c *preUninstallCommand) Run(ctx context.Context, log *slog.Logger) error {
	cluster, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("load cluster configuration (set KUBECONFIG, or run in a pod): %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	controllers.SetLogger(log)
	config := controllers.UninstallConfig{
		Release: c.ReleaseTenants, Operator: c.OperatorDeployment, Namespaces: c.WatchNamespaces, Logger: log,
	}
	if c.Cells {
		if config.Cells, err = labels.Parse(c.CellsSelector); err != nil {
			return fmt.Errorf("--cells-selector must be a label selector: %w", err)
		}
	}
	return controllers.Uninstall(ctx, cluster, config)
}
