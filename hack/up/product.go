package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/devenv/postgres"
)

const (
	productDir = "mnemo" // in the data directory
	database   = "mnemo"
	ownerRole  = "mnemo_owner"
	appRole    = "mnemo_app"
)

// product describes how Mnemo's programs run.
type product struct {
	dir      string
	settings devenv.Settings
	// ownerURL and appURL connect to the database as the role that owns the
	// tables and as the one that does not.
	ownerURL, appURL string
	serve, operator  *devenv.Process
}

// chooseAddresses chooses the ports of our own programs before anything starts, so that
// a port in use is reported immediately.
func (p *platform) chooseAddresses() error {
	dir := filepath.Join(p.dir, productDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create directory: %w", err)
	}
	s, err := devenv.LoadSettings(dir)
	if err != nil {
		return err
	}
	if err := s.ChoosePublicPort(p.port, p.progress); err != nil {
		return err
	}
	for _, use := range []string{"metrics", "operator metrics", "operator health"} {
		if err := s.ChoosePort(use, use, 0); err != nil {
			return err
		}
	}
	s.EnsurePassword(ownerRole)
	s.EnsurePassword(appRole)
	p.product = product{dir: dir, settings: s}
	return s.Save(dir)
}

// address returns host:port for a use of chooseAddresses.
func (p *product) address(use string) string {
	return fmt.Sprintf("127.0.0.1:%d", p.settings.Ports[use])
}

func (p *product) url() string { return "http://" + p.address(devenv.PublicPort) }

// prepareDatabase creates the database and its two roles.
func (p *product) prepareDatabase(ctx context.Context, postgres *postgres.Server) (err error) {
	for _, role := range []string{ownerRole, appRole} {
		if err := postgres.EnsureRole(ctx, role, p.settings.EnsurePassword(role)); err != nil {
			return err
		}
	}
	if err := postgres.EnsureDatabase(ctx, database, ownerRole); err != nil {
		return err
	}
	if p.ownerURL, err = postgres.URLFor(database, ownerRole, p.settings.EnsurePassword(ownerRole)); err != nil {
		return err
	}
	p.appURL, err = postgres.URLFor(database, appRole, p.settings.EnsurePassword(appRole))
	return err
}

// build builds bin/mnemo.
func (p *platform) build(ctx context.Context) (err error) {
	done := p.progress.Step("mnemo", "building")
	defer func() { done(err) }()
	if err := os.MkdirAll(filepath.Dir(p.binary), 0o755); err != nil {
		return fmt.Errorf("create bin: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", p.binary, "./cmd/mnemo")
	cmd.Dir = p.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build mnemo: %w\n%s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// migrate migrates the database to the binary's schema.
func (p *platform) migrate(ctx context.Context) (err error) {
	done := p.progress.Step("database schema", "migrating")
	defer func() { done(err) }()
	cmd := exec.CommandContext(ctx, p.binary, "migrate")
	cmd.Env = append(os.Environ(), "DATABASE_OWNER_URL="+p.product.ownerURL, "DATABASE_APP_ROLE="+appRole)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mnemo migrate: %w\n%s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// storesEnv returns the environment variables that both programs need.
func (p *platform) storesEnv() []string {
	return []string{
		"DATABASE_URL=" + p.product.appURL,
		"MILVUS_ADDRESS=" + p.milvus.Addr,
		"MILVUS_USERNAME=" + p.milvus.User,
		"MILVUS_PASSWORD=" + p.milvus.Password,
		"MNEMO_MODEL_DIR=" + p.model,
		"MNEMO_ONNXRUNTIME=" + p.onnxruntime,
		"MNEMO_LOG_FORMAT=text",
		"MNEMO_WEBHOOKS=true",
	}
}

func (p *platform) startServe(ctx context.Context) (err error) {
	p.product.serve, err = p.run(ctx, "API server", "serve", p.product.url()+"/readyz", append(p.storesEnv(),
		"MNEMO_WEBHOOK_NETWORKS=127.0.0.0/8,::1/128", // of the developer's own programs
		"MNEMO_URL="+p.product.url(),
		"MNEMO_LISTEN="+p.product.address(devenv.PublicPort),
		"MNEMO_METRICS_LISTEN="+p.product.address("metrics"),
	))
	return err
}

func (p *platform) startOperator(ctx context.Context) (err error) {
	// The operator has the rights it has in a cluster, not the administrator's.
	kubeconfig := filepath.Join(p.product.dir, "operator.kubeconfig")
	if err := p.kube.KubeconfigAs(kubeconfig, operatorUser); err != nil {
		return err
	}
	health := "http://" + p.product.address("operator health") + "/readyz"
	p.product.operator, err = p.run(ctx, "operator", "operator", health, append(p.storesEnv(),
		"KUBECONFIG="+kubeconfig,
		"MNEMO_URL="+p.product.url(),
		"MNEMO_METRICS_LISTEN="+p.product.address("operator metrics"),
		"MNEMO_HEALTH_LISTEN="+p.product.address("operator health"),
	))
	return err
}

// signInLink returns a one-time link that signs the first user in.
func (p *platform) signInLink(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, p.binary, "sign-in-link", "--tenant", p.sample.Namespace+"/"+p.sample.Name, "--user", p.sample.Users[0].Name)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+p.product.appURL, "MNEMO_URL="+p.product.url())
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("mnemo sign-in-link: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// run starts a command of bin/mnemo and waits until url returns status 200.
func (p *platform) run(ctx context.Context, title, command, url string, env []string) (running *devenv.Process, err error) {
	done := p.progress.Step(title, "starting")
	defer func() { done(err) }()
	running, err = devenv.StartProgram(ctx, devenv.Program{
		Name: "mnemo-" + command, Dir: p.dir, Path: p.binary, Args: []string{command}, Env: env,
		Limit: time.Minute,
		Ready: func(ctx context.Context) error { return answers(ctx, url) },
	})
	if err != nil {
		return nil, fmt.Errorf("start the %s: %w", title, err)
	}
	p.onStop(stopFirst, running.Stop)
	return running, nil
}

// answers returns nil if a GET of url returns status 200.
func answers(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("build request: %w", err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, res.Status)
	}
	return nil
}
