//go:build !nokubernetes

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/mnemo-dev/mnemo/controllers"
)

type preUninstallCommand struct {
	ReleaseTenants     bool          `env:"MNEMO_RELEASE_TENANTS" help:"Stop the operator and remove the finalizers of all Tenants. Their data stays in the stores."`
	OperatorDeployment string        `env:"MNEMO_OPERATOR_DEPLOYMENT" help:"namespace/name of the operator's Deployment, which is scaled to 0 first."`
	WatchNamespaces    []string      `env:"MNEMO_WATCH_NAMESPACES" help:"Namespaces the operator watches. Default: all."`
	WatchLabelSelector string        `env:"MNEMO_WATCH_LABEL_SELECTOR" help:"Label selector of the Tenants of this installation. Default: all."`
	CellsSecret        string        `env:"MNEMO_CELLS_SECRET" placeholder:"NAMESPACE/NAME" help:"Also remove the finalizers of Cells, and delete this Secret with their connections."`
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
	if config.Selector, err = labels.Parse(c.WatchLabelSelector); err != nil {
		return fmt.Errorf("--watch-label-selector must be a label selector such as database=a: %w", err)
	}
	if c.CellsSecret != "" {
		var ok bool
		if config.CellsSecret, ok = parseNamespacedName(c.CellsSecret); !ok {
			return errors.New("--cells-secret must be namespace/name")
		}
		if config.Cells, err = labels.Parse(c.CellsSelector); err != nil {
			return fmt.Errorf("--cells-selector must be a label selector: %w", err)
		}
	}
	return controllers.Uninstall(ctx, cluster, config)
}

func parseNamespacedName(s string) (n types.NamespacedName, ok bool) {
	n.Namespace, n.Name, ok = strings.Cut(s, "/")
	return n, ok && n.Namespace != "" && n.Name != ""
}
