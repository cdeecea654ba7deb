package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/devenv/postgres"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// platform holds what runs.
type platform struct {
	options
	progress *devenv.Progress
	cache    *devenv.Cache
	postgres *postgres.Server
	mnemo    *devenv.Process
	model    []string // environment variables that select the model
}

// start starts PostgreSQL, downloads the model and builds Mnemo concurrently, and then starts Mnemo, which prints how to use it.
func (p *platform) start(ctx context.Context) (err error) {
	if p.cache, err = devenv.OpenCache(p.progress); err != nil {
		return err
	}
	s, err := p.settings()
	if err != nil {
		return err
	}
	g, groupCtx := errgroup.WithContext(ctx)
	for _, step := range []func(context.Context) error{p.startPostgres, p.fetchModel, p.build} {
		g.Go(func() error { return step(groupCtx) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	p.progress.Printf("==> Mnemo: starting, with its log in %s/logs; Ctrl-C stops it, and the data stays", p.dir)
	return p.startMnemo(ctx, s)
}

// tokenSetting is the name of the setting with the user's token.
const tokenSetting = "token"

// settings returns the ports and the token, which stay the same in later runs.
func (p *platform) settings() (devenv.Settings, error) {
	s, err := devenv.LoadSettings(p.dir)
	if err != nil {
		return s, err
	}
	if err := s.ChoosePublicPort(p.port, p.progress); err != nil {
		return s, err
	}
	if s.Passwords[tokenSetting] == "" {
		if s.Passwords[tokenSetting], err = tenant.NewToken(0, rand.Reader); err != nil {
			return s, err
		}
	}
	return s, s.Save(p.dir)
}

func (p *platform) startPostgres(ctx context.Context) (err error) {
	p.postgres, err = postgres.Start(ctx, devenv.Options{Dir: p.dir, Cache: p.cache, Durable: true})
	return err
}

func (p *platform) fetchModel(ctx context.Context) error {
	model, err := devenv.Model(ctx, p.cache, devenv.DefaultModel)
	if err != nil {
		return err
	}
	library, err := devenv.ONNXRuntime(ctx, p.cache, runtime.GOARCH)
	p.model = []string{"MNEMO_MODEL_DIR=" + model, "MNEMO_ONNXRUNTIME=" + filepath.Join(library, devenv.ONNXRuntimeLibrary)}
	return err
}

func (p *platform) build(ctx context.Context) (err error) {
	done := p.progress.Step("mnemo", "building, about 1 min on 2 cores the first time")
	defer func() { done(err) }()
	return devenv.BuildMnemo(ctx, p.binary(), "-tags", "nokubernetes")
}

func (p *platform) binary() string { return filepath.Join(p.dir, "mnemo") }

func (p *platform) startMnemo(ctx context.Context, s devenv.Settings) (err error) {
	address, token := fmt.Sprintf("127.0.0.1:%d", s.Ports[devenv.PublicPort]), s.Passwords[tokenSetting]
	url := "http://" + address
	p.mnemo, err = devenv.StartProgram(ctx, devenv.Program{
		Name: "mnemo", Dir: p.dir, Path: p.binary(), Args: []string{"dev"}, Stdout: p.stdout,
		Env: append(p.model,
			"DATABASE_OWNER_URL="+p.postgres.URL,
			"MNEMO_TOKEN="+token,
			"MNEMO_URL="+url,
			"MNEMO_LISTEN="+address,
			"MNEMO_LOG_FORMAT=text",
		),
	})
	if err != nil {
		return err
	}
	return devenv.WriteEnv(filepath.Join(p.dir, devenv.EnvFile), [][2]string{{"MNEMO_URL", url}, {"MNEMO_TOKEN", token}})
}

// stop stops Mnemo before PostgreSQL.
func (p *platform) stop() error {
	err := p.mnemo.Stop()
	if p.postgres != nil {
		err = errors.Join(err, p.postgres.Stop())
	}
	return err
}
