package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/mnemo-dev/mnemo/internal/telemetry"
)

// cli is everything that can be said on the command line.
type cli struct {
	telemetry.LogConfig

	Serve     serveCommand     `cmd:"" help:"Answer HTTP and run the jobs."`
	Operator  operatorCommand  `cmd:"" help:"Make of Tenants what they ask for."`
	Migrate   migrateCommand   `cmd:"" help:"Bring the database to this binary's schema. Run it before the other two."`
	Reindex   reindexCommand   `cmd:"" help:"Build a tenant's vectors again from the database."`
	Verify    verifyCommand    `cmd:"" help:"Compare the vector store with the database, and repair what differs."`
	Tenants   tenantsCommand   `cmd:"" help:"See what is stored of tenants, and act where their Tenant cannot."`
	Rotate    rotateCommand    `cmd:"" help:"Revoke every token and password of a tenant, or of all: the operator issues new ones."`
	Wait      waitCommand      `cmd:"" help:"Wait until the database has this binary's schema."`
	Probe     probeCommand     `cmd:"" help:"Ask a running API server whether it does what every client needs."`
	Remember  rememberCommand  `cmd:"" group:"user" help:"Store a memory."`
	Search    searchCommand    `cmd:"" group:"user" help:"Find memories or conversations by meaning."`
	Import    importCommand    `cmd:"" group:"user" help:"Import an export of ChatGPT, Claude or Mnemo."`
	Export    exportCommand    `cmd:"" group:"user" help:"Save everything you have in a zip."`
	OpenAPI   openapiCommand   `cmd:"" name:"openapi" help:"Print the HTTP contract as OpenAPI 3.1."`
	Uninstall uninstallCommand `cmd:"" help:"Before the operator is taken away: refuse while Tenants exist, or let them go."`
	Version   versionCommand   `cmd:"" help:"Print which build this is."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		message, code := explain(err)
		fmt.Fprintln(os.Stderr, "mnemo:", message)
		os.Exit(code) //nolint:gocritic // stop only frees the signal handler of a process that ends here
	}
}

// userGroup is that of the commands which speak to a server as a user.
const userGroup = "user"

// run parses the arguments and runs the command they name.
func run(ctx context.Context, args []string) error {
	var c cli
	parser, err := kong.New(&c, kong.Name("mnemo"),
		kong.Description("Memory and chat history for every customer of a SaaS host."),
		kong.ExplicitGroups([]kong.Group{{Key: userGroup, Title: "As a user of a tenant (MNEMO_URL and MNEMO_TOKEN say who):"}}),
		kong.UsageOnError(), kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(openTerminal()))
	if err != nil {
		return err
	}
	command, err := parser.Parse(args)
	if err != nil {
		return err
	}
	err = command.Run(telemetry.NewLogger(os.Stderr, c.LogConfig))
	if group := command.Selected().Group; err != nil && group != nil && group.Key == userGroup {
		return &remoteError{err}
	}
	return err
}

type versionCommand struct{}

// Run prints the build.
func (versionCommand) Run() error {
	_, err := fmt.Println("mnemo", telemetry.Version())
	return err
}
