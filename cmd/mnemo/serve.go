package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"sync"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"golang.org/x/sync/errgroup"

	"github.com/mnemo-dev/mnemo/apiserver"
	"github.com/mnemo-dev/mnemo/internal/metering"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/telemetry"
)

// shutdownTimeout is how long running requests and jobs may take to finish.
const shutdownTimeout = 20 * time.Second

type serveCommand struct {
	databaseFlags
	milvusFlags
	embedderFlags
	nextEmbedderFlags
	chatFlags
	rerankFlags
	telemetryFlags
	URL             *url.URL       `name:"url" env:"MNEMO_URL" help:"URL at which users reach this server, such as https://mnemo.example.com. Without it, web pages cannot call /mcp; with https, apps can request access with OAuth."`
	Listen          string         `env:"MNEMO_LISTEN" default:":8080" help:"Address of the HTTP server, host:port."`
	ImportLimit     int64          `env:"MNEMO_IMPORT_LIMIT" default:"4294967296" help:"Maximum size of an import file in bytes."`
	UploadLimit     int64          `env:"MNEMO_UPLOAD_LIMIT" default:"68719476736" help:"Maximum size in bytes of all files together that are stored until they are imported."`
	MetricsListen   string         `env:"MNEMO_METRICS_LISTEN" default:":9090" help:"Address of the metrics server, host:port."`
	OIDCProviders   string         `env:"MNEMO_OIDC_PROVIDERS" name:"oidc-providers" type:"existingfile" help:"JSON file with the identity providers for signing in to the dashboard (docs/sso.md)."`
	ErasureLedger   bool           `env:"MNEMO_ERASURE_LEDGER" help:"Serve only while the erasure ledger is applied to the database (docs/backup.md)."`
	AllowedOrigins  []string       `env:"MNEMO_ALLOWED_ORIGINS" help:"Origins of web pages whose scripts may call the API with any token, such as https://app.example.com. Applications may allow more for their own keys."`
	Webhooks        bool           `env:"MNEMO_WEBHOOKS" help:"Deliver events to the webhooks of tenants."`
	WebhookNetworks []netip.Prefix `env:"MNEMO_WEBHOOK_NETWORKS" help:"Networks to which webhooks may connect although their addresses are not public, also with plain HTTP, such as 10.1.0.0/16."`
	SecretDetails   bool           `env:"MNEMO_SECRET_DETAILS" help:"Tell users of the dashboard the namespace of the Secret with their token, and the command that reads it. By default, they see only its name, as a reference for their administrator."`
	UsageDir        string         `env:"MNEMO_USAGE_DIR" type:"path" help:"Directory for counted requests until they are stored in the database (docs/metering.md). It must survive a restart of the process, and belong to this database. Without it, a killed process loses up to 5 seconds of counts."`
	TrustedProxies  []netip.Prefix `env:"MNEMO_TRUSTED_PROXIES" help:"Networks of trusted proxies, such as 10.0.0.0/8. Their X-Forwarded-For is used for rate limits of sign-ins and registrations."`

	listening func() // called when the server accepts connections; may be nil
}

// originForm is the form of an origin, as in the Tenant resource.
var originForm = regexp.MustCompile(`^https?://[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[1-9][0-9]{0,4})?$`)

// Validate reports invalid flags.
func (c *serveCommand) Validate() error {
	for _, origin := range c.AllowedOrigins {
		if !originForm.MatchString(origin) {
			return fmt.Errorf("--allowed-origins: %q must be a scheme and a host in lower case without a path, such as https://app.example.com", origin)
		}
	}
	if u := c.URL; u != nil && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "") {
		return errors.New("--url must be the URL at which users reach this server, such as https://mnemo.example.com")
	}
	return nil
}

// Run serves HTTP and works on jobs until the context ends.
func (c *serveCommand) Run(ctx context.Context, log *slog.Logger) error {
	limitMemory(ctx, memlimit.FromCgroup, serverMemoryRatio, log)
	stopTracing, err := telemetry.StartTracing(ctx, c.TraceConfig, "mnemo-serve", log)
	if err != nil {
		return err
	}
	registry, counts := newMetrics()
	c.databaseFlags.metrics, c.milvusFlags.metrics = counts, counts
	c.databaseFlags.traced = c.Endpoint != ""
	g, err := c.generation()
	if err != nil {
		return err
	}
	external, err := c.openExternal()
	if err != nil {
		return err
	}
	s, err := openStores(ctx, c.databaseFlags, c.milvusFlags, g, log)
	if err != nil {
		return err
	}
	defer s.close()
	if err := c.awaitErasures(ctx, s, log); err != nil {
		return err
	}
	embedders, err := openEmbedders(ctx, s, counts, c.embedderFlags, c.next(c.embedderFlags))
	if err != nil {
		return err
	}
	log.InfoContext(ctx, "embedding model loaded", "model", g.Model)
	if err := c.telemetryFlags.watch(ctx, s, registry, counts, log); err != nil {
		return err
	}
	cache := apiserver.NewCache()
	config := c.serverConfig(s, c.engine(s, embedders, external.reranker, log), embedders, external.models.recalls, cache, log)
	requests, err := metering.OpenJournal(c.UsageDir, log)
	if err != nil {
		return err
	}
	config.Registry, config.Stages, config.Requests = registry, counts, requests
	config.Providers, config.OAuth = external.providers, c.oauthService(ctx, s.db, log)
	extracting := extractions(&config, s.db, external.models.facts, log)
	server := apiserver.New(config)
	stopReporting := inBackground(ctx, func(ctx context.Context) { requests.Run(ctx, s.db) })
	defer stopReporting()
	workers, err := startJobs(ctx, s, embedders, counts, c.deliverer(s.db, log), extracting, log)
	if err != nil {
		return err
	}
	return c.serve(ctx, server, c.listener(s.db, cache, log), workers, func(ctx context.Context) error {
		stopReporting()
		return stopTracing(ctx)
	}, log)
}

// listener returns the receiver of database notifications, which drop entries of the cache.
func (c *serveCommand) listener(db *postgres.DB, cache *apiserver.Cache, log *slog.Logger) func(context.Context) error {
	listen := whileSealing(db, log, c.Webhooks, func(ctx context.Context) error { return db.Listen(ctx, cache) })
	if c.ErasureLedger {
		listen = untilRestored(db, listen)
	}
	return listen
}

// awaitErasures waits until the erasure ledger is applied to the database, if there is one.
func (c *serveCommand) awaitErasures(ctx context.Context, s *stores, log *slog.Logger) error {
	if !c.ErasureLedger {
		return nil
	}
	return retry(ctx, log, erasureTimeout, s.db.CheckErasures)
}

// serve serves HTTP and metrics and runs listen, which receives database
// notifications, until the context ends. Then it drains requests while it stops the workers, because a request may last
// until the timeout, and calls finish.
func (c *serveCommand) serve(ctx context.Context, server *apiserver.Server, listen func(context.Context) error, workers stopper,
	finish func(context.Context) error, log *slog.Logger,
) error {
	public, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("listen for HTTP (--listen): %w", err)
	}
	private, err := net.Listen("tcp", c.MetricsListen)
	if err != nil {
		return fmt.Errorf("listen for metrics (--metrics-listen): %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", server.MetricsHandler())
	metrics := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	releaseStartMemory(ctx, log)
	log.InfoContext(ctx, "serving", "address", public.Addr().String(), "metrics", private.Addr().String())
	if c.listening != nil {
		c.listening()
	}

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return server.Serve(public) })
	group.Go(func() error { return ignoreClosed(metrics.Serve(private)) })
	group.Go(func() error { return listen(ctx) })
	group.Go(func() error {
		<-ctx.Done()
		log.Info("shutting down", "timeout", shutdownTimeout.String())
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		var stopped error
		var wait sync.WaitGroup
		wait.Go(func() { stopped = workers.Stop(ctx) })
		drained := server.Shutdown(ctx)
		wait.Wait()
		return errors.Join(drained, stopped, finish(ctx), metrics.Shutdown(ctx))
	})
	return group.Wait()
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
