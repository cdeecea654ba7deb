package main

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"github.com/mnemo-dev/mnemo/apiserver"
	"github.com/mnemo-dev/mnemo/apiserver/dashboard"
	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/oauth"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/telemetry"
	"github.com/mnemo-dev/mnemo/internal/tokens"
)

// externalServices are the optional services that flags configure.
type externalServices struct {
	models    chatModels
	reranker  retrieve.Reranker
	providers []*dashboard.Provider
}

// openExternal returns the configured services. It connects to none of them.
func (c *serveCommand) openExternal() (out externalServices, err error) {
	if out.models, err = c.chatFlags.open(); err != nil {
		return out, err
	}
	if out.reranker, err = c.rerankFlags.open(); err != nil {
		return out, err
	}
	out.providers, err = c.providers()
	return out, err
}

func (c *serveCommand) providers() ([]*dashboard.Provider, error) {
	if c.OIDCProviders == "" {
		return nil, nil
	}
	return dashboard.ReadProviders(c.OIDCProviders)
}

func (c *serveCommand) engine(s *stores, embedders retrieve.Embedders, reranker retrieve.Reranker, log *slog.Logger) *retrieve.Engine {
	config := retrieve.Config{Searcher: s.db, Embedders: embedders, Log: log,
		Reranker: reranker, RerankTimeout: c.RerankTimeout, RerankPassages: c.RerankPassages}
	if s.milvus() != nil {
		config.Index = s.index
	}
	return retrieve.New(config)
}

func (c *serveCommand) serverConfig(
	s *stores, engine *retrieve.Engine, embedders retrieve.Embedders, model chat.Synthesizer, cache *apiserver.Cache, log *slog.Logger,
) apiserver.Config {
	memories, conversations := s.db.Memories(), s.db.Conversations()
	return apiserver.Config{
		Memories: memory.NewService(memory.Config{
			Store: memories, Buckets: memories, Searcher: engine, Index: s.index, Embedders: embedders,
			CountTokens: tokens.Count,
		}),
		Chats: chat.NewService(chat.Config{
			Store: conversations, Passages: s.db,
			Searcher: engine, Index: s.index, Embedders: embedders, CountTokens: tokens.CountUpTo, Synthesizer: model, Log: log,
		}),
		Imports: &importer.Service{
			Imports: s.db.Imports(), Uploads: s.db.Imports(), Limits: importer.UploadLimits{User: 2 * c.ImportLimit, Total: c.UploadLimit},
		},
		Accounts: account.NewService(account.Config{Store: s.db.Accounts()}),
		Audit:    s.db,
		Tokens:   s.db,
		Rates:    s.db,
		Users:    s.db,
		Cache:    cache,
		Sessions: s.db, Access: s.db, UserTokens: s.db, Holdings: s.db.Holdings, Administration: s.db, Platform: s.db, TrustedProxies: c.TrustedProxies, AllowedOrigins: c.AllowedOrigins,
		ImportFile: c.ImportLimit, SecretDetails: c.SecretDetails, DatabaseCell: s.db.DatabaseCell(),
		URL:     c.URL,
		Version: telemetry.Version(),
		Log:     log,
	}
}

// oauthService returns the OAuth service, or nil if the server's URL does not support
// OAuth.
func (c *serveCommand) oauthService(ctx context.Context, db *postgres.DB, log *slog.Logger) *oauth.Service {
	if !oauth.Serves(c.URL) {
		log.InfoContext(ctx, "OAuth is disabled: it requires --url with https and without a path")
		return nil
	}
	return oauth.NewService(oauth.Config{Clients: db, Grants: db, Access: db, URL: c.URL, Cell: db.DatabaseCell(), Random: rand.Reader, Now: time.Now})
}
