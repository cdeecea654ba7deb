package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mnemo-dev/mnemo/apiserver"
	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/extract"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/jobs"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/reembed"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/telemetry"
	"github.com/mnemo-dev/mnemo/internal/tokens"
	"github.com/mnemo-dev/mnemo/internal/webhook"
)

// stopper stops after finishing its current work.
type stopper interface {
	Stop(ctx context.Context) error
}

// startJobs starts the job workers. Jobs survive the end of the context until the
// workers are stopped, so that running ones can finish. Imports take long and are
// interrupted instead; another worker resumes them.
func startJobs(ctx context.Context, s *stores, embedders retrieve.Embedders, counts *telemetry.Metrics, webhooks *webhook.Deliverer, extracting *extract.Runner, log *slog.Logger) (stopper, error) {
	imports := s.db.Imports()
	restore := importer.Restore(importer.RestoreConfig{Files: imports, Restorer: imports, CountTokens: tokens.Count})
	importing := importer.New(importer.Config{
		Archive: restore,
		Leases:  imports, Files: counts.Imports(imports), CountTokens: tokens.Count, Stop: ctx.Done(), Log: log,
	})
	indexer := indexing.NewIndexer(s.db, s.index, embedders, log)
	config, err := jobs.Config(indexer, s.db, importing, log)
	if err != nil {
		return nil, err
	}
	migrator := reembed.New(reembed.Config{Store: s.db, Indexer: indexer, Partitions: s.index, Embedders: embedders, Log: log})
	if err := jobs.MigrateEmbeddings(config, migrator); err != nil {
		return nil, err
	}
	if err := jobs.ExtractFacts(config, extracting, log); err != nil {
		return nil, err
	}
	if webhooks != nil {
		if err := jobs.DeliverWebhooks(config, webhooks, log); err != nil {
			return nil, err
		}
	}
	jobs.Observe(config, counts)
	client, err := s.db.Jobs(config)
	if err != nil {
		return nil, err
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return nil, fmt.Errorf("start workers: %w", err)
	}
	return client, nil
}

// extractions returns the runner of extractions, and configures the server to accept them if
// there is a chat model. Without one, the runner stores the messages of earlier requests.
func extractions(config *apiserver.Config, db *postgres.DB, model *extract.OpenAI, log *slog.Logger) *extract.Runner {
	if model != nil {
		config.Extractions = db
	}
	return &extract.Runner{Store: db, Memories: config.Memories, Model: model, Log: log}
}

// deliverer returns the deliverer of webhooks, or nil if they are disabled.
func (c *serveCommand) deliverer(db *postgres.DB, log *slog.Logger) *webhook.Deliverer {
	if !c.Webhooks {
		return nil
	}
	return &webhook.Deliverer{Store: db, Sender: webhook.NewSender(c.WebhookNetworks, time.Now), Log: log}
}

// whileSealing returns a function that runs fn, seals audit records meanwhile, and queues their
// delivery to webhooks.
func whileSealing(db *postgres.DB, log *slog.Logger, webhooks bool, fn func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		g, ctx := errgroup.WithContext(ctx)
		g.Go(func() error { return fn(ctx) })
		g.Go(func() error {
			audit.Seal(ctx, db, log)
			return nil
		})
		if webhooks {
			g.Go(func() error {
				webhook.Queue(ctx, db, log)
				return nil
			})
		}
		return g.Wait()
	}
}

// inBackground runs fn with a context that does not end with ctx, and returns a function that
// ends it and waits for fn.
func inBackground(ctx context.Context, fn func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}
