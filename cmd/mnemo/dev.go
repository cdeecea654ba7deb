package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"time"

	"github.com/alecthomas/kong"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	devRole         = "mnemo_dev"
	devUser         = "alice"
	devLinkLifetime = 10 * time.Minute
	devStartTimeout = time.Minute
)

// devCommand runs the server for one user. It does what the chart, the operator and a Tenant do in a cluster.
type devCommand struct {
	OwnerURL      string   `name:"database-owner-url" env:"DATABASE_OWNER_URL" required:"" help:"PostgreSQL URL of a superuser, or of a role that owns the database and may create roles. The database must be empty, or that of an earlier run."`
	Token         string   `env:"MNEMO_TOKEN" help:"API token of the user. Default: a new one at each start."`
	URL           *url.URL `name:"url" env:"MNEMO_URL" default:"http://localhost:8080" help:"URL at which you reach the server."`
	Listen        string   `env:"MNEMO_LISTEN" default:"127.0.0.1:8080" help:"Address of the HTTP server, host:port."`
	MetricsListen string   `env:"MNEMO_METRICS_LISTEN" default:"127.0.0.1:0" help:"Address of the metrics server, host:port."`
}

// Help explains the other settings.
func (devCommand) Help() string {
	return "The other variables of `mnemo serve` apply, such as MNEMO_MODEL_DIR for the local embedding model, or MNEMO_EMBEDDER=openai."
}

// Validate checks the URL, with which Run would wait for a server, and the token.
func (c *devCommand) Validate() error {
	if u, err := url.Parse(c.OwnerURL); err != nil || u.Host == "" {
		return errors.New("--database-owner-url must have the form postgres://user:password@host:port/database")
	}
	if c.Token != "" && !tenant.IsToken(c.Token) {
		return errors.New("--token must have the form of an API token: mn_ and 38 letters and digits")
	}
	return nil
}

// Run prepares the database, and serves until the context ends. Once the server accepts connections, it prints how to use it.
func (c *devCommand) Run(ctx context.Context, log *slog.Logger) error {
	databaseURL, err := c.prepareDatabase(ctx, log)
	if err != nil {
		return err
	}
	server, err := c.server(databaseURL)
	if err != nil {
		return err
	}
	link, err := c.prepareUser(ctx, server, log)
	if err != nil {
		return err
	}
	server.listening = func() { c.printUsage(link) }
	return server.Run(ctx, log)
}

// prepareDatabase waits for PostgreSQL, creates the role of the server, migrates the schema and returns the role's URL.
func (c *devCommand) prepareDatabase(ctx context.Context, log *slog.Logger) (databaseURL string, err error) {
	err = retry(ctx, log, devStartTimeout, func(ctx context.Context) (err error) {
		databaseURL, err = postgres.EnsureLoginRole(ctx, c.OwnerURL, devRole, rand.Text())
		return err
	})
	if err != nil {
		return "", err
	}
	version, err := postgres.Migrate(ctx, postgres.MigrateConfig{OwnerURL: c.OwnerURL, AppRole: devRole, Log: log})
	if err != nil {
		return "", err
	}
	log.InfoContext(ctx, "schema migrated", "version", version)
	return databaseURL, nil
}

// server returns the command that serves, configured by its variables.
func (c *devCommand) server(databaseURL string) (*serveCommand, error) {
	var s serveCommand
	parser, err := kong.New(&s, modelVars())
	if err != nil {
		return nil, err
	}
	_, err = parser.Parse([]string{
		"--database-url", databaseURL, "--index=none", "--url", c.URL.String(), "--listen", c.Listen, "--metrics-listen", c.MetricsListen,
	})
	return &s, err
}

// prepareUser creates the tenant and its user, unless they exist, makes the token the only one that no user created,
// and returns a link that signs the user in.
func (c *devCommand) prepareUser(ctx context.Context, server *serveCommand, log *slog.Logger) (string, error) {
	g, err := server.generation()
	if err != nil {
		return "", err
	}
	s, err := openStores(ctx, server.databaseFlags, server.milvusFlags, g, log)
	if err != nil {
		return "", err
	}
	defer s.close()
	spec := devTenant()
	if err := checkOnlyTenant(ctx, s.db, spec); err != nil {
		return "", err
	}
	applied, err := s.db.Apply(ctx, spec)
	if err != nil {
		return "", err
	}
	if _, err := s.db.EnsurePlacement(ctx, applied.ID); err != nil {
		return "", err
	}
	if err := c.installToken(ctx, s.db, applied.ID, applied.Users[0]); err != nil {
		return "", err
	}
	return createSignInLink(ctx, s.db, applied.ID, devUser, c.URL, devLinkLifetime)
}

// devTenant returns the tenant, with quotas that nobody reaches by hand.
func devTenant() tenant.Spec {
	quota := tenant.MaximumQuota()
	quota.Storage, quota.Users, quota.PageTokens = 100<<30, 1, tenant.DefaultQuota().PageTokens
	return tenant.Spec{
		ID: "00000000-0000-4000-8000-000000000001", Cluster: "dev", Namespace: "default", NamespaceUID: "default", Name: "acme", DisplayName: "Acme",
		DeletionPolicy: tenant.Retain, Isolation: tenant.Partition,
		Users: []tenant.UserSpec{{Name: devUser}},
		Quota: quota,
	}
}

// checkOnlyTenant returns Conflict for the database of an installation.
func checkOnlyTenant(ctx context.Context, db *postgres.DB, spec tenant.Spec) error {
	records, err := db.Records(ctx, tenant.RecordsOf{})
	if err != nil {
		return err
	}
	for _, r := range records {
		if r.Resource != spec.ID {
			return fault.New(fault.Conflict, "--database-owner-url is the database of an installation with the tenant %s/%s: use an empty database", r.Namespace, r.Name)
		}
	}
	return nil
}

// installToken replaces the user's token, unless it is the current one.
func (c *devCommand) installToken(ctx context.Context, db *postgres.DB, id tenant.ID, u tenant.User) (err error) {
	if c.Token == "" {
		if c.Token, err = tenant.NewToken(db.DatabaseCell(), rand.Reader); err != nil {
			return err
		}
	}
	credential := tenant.Credential{Generation: 1, TokenHash: tenant.HashSecret(c.Token), Issuer: tenant.IssuerOperator}
	if u.Token != nil {
		if u.Token.Fingerprint == credential.TokenHash.Fingerprint() {
			return nil
		}
		credential.Generation = u.Token.Generation + 1
	}
	if err := db.Install(ctx, id, u.Name, credential); err != nil {
		return err
	}
	return db.RevokeOlder(ctx, id, u.Name, credential.Generation, 0)
}

func (c *devCommand) printUsage(link string) {
	auth := `-H "Authorization: Bearer ` + c.Token + `"`
	fmt.Fprintf(os.Stdout, `
Mnemo runs at %[1]s.

  dashboard   %[2]s   in a browser: signs in %[3]s once, within 10 minutes
  API         %[1]s   (reference: %[1]s/docs)
  MCP         %[1]s/mcp
  token       %[4]s

Try, in another terminal: store a memory, find it by other words.

  curl -s %[1]s/api/memory %[5]s -H "Content-Type: application/json" -d '{"text":"%[6]s My sister Ana moved to Lisbon."}'; echo

  curl -s -G %[1]s/api/v2/memory %[5]s --data-urlencode "query=which city does my sibling live in?"; echo

`, c.URL, link, devUser, c.Token, auth, time.Now().Format(time.DateOnly))
}
