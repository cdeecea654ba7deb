package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/postgres"
)

// tryAgain is how long to wait between tries of what others have to make first.
const tryAgain = 2 * time.Second

// patiently does something until it is done, for as long as within; each new
// reason why it is not is logged once. Within 0 it is tried once.
func patiently(ctx context.Context, log *slog.Logger, within time.Duration, do func(context.Context) error) error {
	deadline, told := time.Now().Add(within), ""
	for {
		err := do(ctx)
		if err == nil || ctx.Err() != nil || !time.Now().Add(tryAgain).Before(deadline) {
			return err
		}
		if err.Error() != told {
			told = err.Error()
			log.WarnContext(ctx, "not yet; trying again", "error", err, "until", deadline.UTC().Format(time.RFC3339))
		}
		select {
		case <-ctx.Done():
		case <-time.After(tryAgain):
		}
	}
}

type waitCommand struct {
	DatabaseURL string        `env:"DATABASE_URL" required:"" help:"PostgreSQL URL of the app's role."`
	Within      time.Duration `env:"MNEMO_WAIT" default:"15m" help:"Longest wait."`
}

// Run returns when serve and operator could start on the database.
func (c *waitCommand) Run(ctx context.Context, log *slog.Logger) error {
	return patiently(ctx, log, c.Within, func(ctx context.Context) error {
		db, err := postgres.Open(ctx, postgres.Config{URL: c.DatabaseURL, MaxConns: 1, Log: log})
		if err != nil {
			return err
		}
		db.Close()
		log.InfoContext(ctx, "the database has this binary's schema", "version", postgres.SchemaVersion())
		return nil
	})
}

type probeCommand struct {
	URL    string        `arg:"" help:"Base URL of the API, such as http://mnemo."`
	Within time.Duration `default:"30s" help:"How long to try."`
}

// Run asks what every client can: whether it is ready, for the contract, and
// for data without a token, which must be refused.
func (c *probeCommand) Run(ctx context.Context, log *slog.Logger) error {
	base := strings.TrimSuffix(c.URL, "/")
	err := patiently(ctx, log, c.Within, func(ctx context.Context) error {
		for _, ask := range []struct {
			path string
			want int
		}{{"/readyz", http.StatusOK}, {"/openapi.json", http.StatusOK}, {"/api/buckets", http.StatusUnauthorized}} {
			if err := expect(ctx, base+ask.path, ask.want); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	_, err = fmt.Println(base, "is ready, shows its contract, and asks for a token")
	return err
}

// expect returns nil when a GET is answered with the status.
func expect(ctx context.Context, url string, want int) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("the URL cannot be read: %w", err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != want {
		said, _ := io.ReadAll(io.LimitReader(res.Body, 500)) // only to say more
		return fmt.Errorf("%s is answered %s and not %d: %s", url, res.Status, want, said)
	}
	return nil
}

type uninstallCommand struct {
	ReleaseTenants     bool          `env:"MNEMO_RELEASE_TENANTS" help:"Stop the operator and let all Tenants go; their data stays in the stores."`
	OperatorDeployment string        `env:"MNEMO_OPERATOR_DEPLOYMENT" help:"namespace/name of the operator's Deployment, which is stopped first."`
	WatchNamespaces    []string      `env:"MNEMO_WATCH_NAMESPACES" help:"Namespaces whose Tenants were served. Default: all."`
	Within             time.Duration `default:"3m" help:"Longest wait for the operator to stop."`
}

// Run refuses while Tenants exist, or lets go of them.
func (c *uninstallCommand) Run(ctx context.Context, log *slog.Logger) error {
	cluster, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the cluster (set KUBECONFIG, or run in a pod): %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.Within)
	defer cancel()
	controllers.SetLogger(log)
	return controllers.Uninstall(ctx, cluster, controllers.UninstallConfig{
		Release: c.ReleaseTenants, Operator: c.OperatorDeployment, Namespaces: c.WatchNamespaces, Logger: log,
	})
}
