package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"

	"github.com/mnemo-dev/mnemo/internal/telemetry"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// cli is the command tree.
type cli struct {
	telemetry.LogConfig

	Serve serveCommand `cmd:"" help:"Run the API server and the background workers."`
	kubernetesCommands
	Migrate       migrateCommand            `cmd:"" help:"Migrate the database schema to this version. Run it before serve and operator."`
	Dev           devCommand                `cmd:"" help:"Run Mnemo for one user, without Kubernetes and Milvus, to try it or to develop against it."`
	Wait          waitCommand               `cmd:"" help:"Wait until the database schema matches this version."`
	Index         indexCommand              `cmd:"" help:"Maintain the vector index."`
	Embeddings    embeddingsCommand         `cmd:"" help:"Replace the embedding model while the platform is in use."`
	Tenants       tenantsCommand            `cmd:"" help:"List, copy, retire and purge tenants in the database."`
	Users         usersCommand              `cmd:"" help:"List, remove and restore users of identity providers."`
	SignInLink    signInLinkCommand         `cmd:"" name:"sign-in-link" help:"Print a link that signs a user in to the dashboard once."`
	Rotate        rotateCommand             `cmd:"" help:"Revoke all tokens and passwords of one tenant or of all tenants. The operator issues new ones."`
	Erasures      erasuresCommand           `cmd:"" help:"Prevent erased data from reappearing after a database restore."`
	Erase         eraseCommand              `cmd:"" help:"Permanently delete a user or a retained tenant, and print a receipt with the queries that prove it."`
	Audit         auditCommand              `cmd:"" help:"Export and verify the audit log."`
	Webhooks      webhooksCommand           `cmd:"" help:"Deliver the events of a tenant to URLs."`
	Usage         usageCommand              `cmd:"" help:"Export the usage of tenants for billing."`
	SmokeTest     smokeTestCommand          `cmd:"" help:"Check that an API server is ready and requires authentication."`
	Login         loginCommand              `cmd:"" group:"user" help:"Store the URL and token for the commands below."`
	Logout        logoutCommand             `cmd:"" group:"user" help:"Delete the stored URL and token."`
	Remember      rememberCommand           `cmd:"" group:"user" help:"Store a memory."`
	List          listMemoriesCommand       `cmd:"" group:"user" help:"List memories, newest first."`
	Conversations conversationsCommand      `cmd:"" group:"user" help:"List conversations, newest first."`
	Get           getCommand                `cmd:"" group:"user" help:"Print a memory or a conversation."`
	Delete        deleteCommand             `cmd:"" group:"user" help:"Delete memories and conversations."`
	Search        searchCommand             `cmd:"" group:"user" help:"Search memories or conversations by meaning."`
	Recall        recallCommand             `cmd:"" group:"user" help:"Print conversation excerpts that answer a question."`
	Import        importCommand             `cmd:"" group:"user" help:"Import exports of ChatGPT, Claude, Gemini and other assistants, or of Mnemo."`
	Export        exportCommand             `cmd:"" group:"user" help:"Download all your data as a zip file."`
	Tokens        tokensCommand             `cmd:"" group:"user" help:"List, create and revoke your tokens."`
	OpenAPI       openapiCommand            `cmd:"" name:"openapi" help:"Print the HTTP API as OpenAPI 3.1."`
	Version       versionCommand            `cmd:"" help:"Print the version."`
	Completion    kongcompletion.Completion `cmd:"" help:"Print the code that enables completion in your shell."`

	ShowVersion kong.VersionFlag `name:"version" help:"Print the version."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		message, code := explain(err)
		fmt.Fprintln(os.Stderr, "mnemo:", printable(message))
		os.Exit(code) //nolint:gocritic // stop only unregisters the signal handler, and the process is exiting
	}
}

// userGroup is the group of the commands that call a server as a user.
const userGroup = "user"

// run parses args and runs the selected command.
func run(ctx context.Context, args []string) error {
	var c cli
	parser, err := kong.New(&c, kong.Name("mnemo"),
		kong.Description("Multi-tenant memory and chat history for AI assistants."),
		kong.ExplicitGroups([]kong.Group{{Key: userGroup, Title: "User commands (run mnemo login, or set MNEMO_URL and MNEMO_TOKEN):"}}),
		modelVars(), importVars(), kong.Vars{"version": versionText()}, kong.UsageOnError(), kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(openTerminal()))
	if err != nil {
		return err
	}
	kongcompletion.Register(parser)
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	if err != nil {
		return err
	}
	actor := tenant.Actor{Kind: tenant.ActorAdministrator, Via: commandName(command)}
	command.BindTo(tenant.WithActor(ctx, actor), (*context.Context)(nil))
	err = command.Run(telemetry.NewLogger(os.Stderr, c.LogConfig))
	if group := command.Selected().Group; err != nil && group != nil && group.Key == userGroup {
		return &remoteError{err}
	}
	return err
}

// commandName returns the path of the command without its arguments.
func commandName(c *kong.Context) string {
	var names []string
	for _, p := range c.Path {
		if p.Command != nil {
			names = append(names, p.Command.Name)
		}
	}
	return strings.Join(names, " ")
}

type versionCommand struct{}

// Run prints the version, and the compiler and platform that bug reports need.
func (versionCommand) Run() error {
	_, err := fmt.Println(versionText())
	return err
}

func versionText() string {
	return fmt.Sprintf("mnemo %s (%s, %s/%s)", telemetry.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
