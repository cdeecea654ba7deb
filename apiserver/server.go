package apiserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humafiber"
	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/mnemo-dev/mnemo/apiserver/dashboard"
	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/apiserver/mem0"
	"github.com/mnemo-dev/mnemo/apiserver/reference"
	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/oauth"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/trace"
)

// Config configures a Server. Memories, Chats, Imports, Accounts, Audit and Tokens
// are required.
type Config struct {
	Memories *memory.Service
	Chats    *chat.Service
	Imports  *importer.Service
	Accounts *account.Service
	Audit    audit.Store
	Tokens   tenant.TokenStore
	// Users are the users of application keys; required if there are applications.
	Users tenant.ApplicationUserStore
	// UserTokens are the tokens that users create; required by their routes and the dashboard.
	UserTokens tenant.UserTokenStore
	// Rates counts requests across replicas; if nil, each replica counts its own.
	Rates tenant.RateStore
	// Requests counts answered requests for billing; optional.
	Requests RequestCounter
	// Cache caches identities; a new one if nil. The listener for database
	// notifications must invalidate the same cache.
	Cache *Cache
	// Sessions, Access and Holdings are used by the dashboard, which is disabled
	// without Sessions.
	Sessions tenant.SessionStore
	Access   tenant.AccessStore
	Holdings func(context.Context, tenant.Scope) (tenant.Holdings, error)
	// Administration is for the administrators of tenants. Required with Sessions.
	Administration dashboard.Administration
	// Platform is for platform administrators. Required if a provider has some.
	Platform dashboard.Platform
	// Providers are the identity providers for signing in to the dashboard.
	Providers []*dashboard.Provider
	// TrustedProxies are the proxies whose X-Forwarded-For is trusted.
	TrustedProxies []netip.Prefix
	// SecretDetails lets the dashboard tell users where Kubernetes stores their token.
	SecretDetails bool
	// DatabaseCell is that of the stores. Tokens, sessions and sign-in links carry it.
	DatabaseCell tenant.DatabaseCell
	// AllowedOrigins are the origins of web pages whose scripts may call the API, in addition to those
	// of each application.
	AllowedOrigins []string
	// URL is the public URL of the server, such as https://mnemo.example.com;
	// nil if unknown.
	URL *url.URL
	// OAuth lets users grant OAuth clients access to /mcp; if nil, clients
	// need the user's token.
	OAuth *oauth.Service
	// Extractions extract facts from messages of the API of mem0; if nil, messages are stored
	// as they are.
	Extractions mem0.Extractions
	// Version is the build version reported to MCP clients.
	Version string
	// Stages records the stages of requests; optional.
	Stages trace.Recorder
	// Registry is where the server registers its metrics; a new one if nil.
	Registry *prometheus.Registry
	Log      *slog.Logger // slog.Default() if nil

	ImportFile     int64         // size limit of an imported file, bytes; default 4 GiB
	RequestTimeout time.Duration // deadline of a handler's context; default 30 s
	ReadTimeout    time.Duration // for request headers, and again for the first bytes of the body; default 15 s
	WriteTimeout   time.Duration // for a response, and a pause of a client during an export; default 1 min
	ExportTimeout  time.Duration // for an entire export; default 1 h
	IdleTimeout    time.Duration // between requests of a connection; default 75 s
}

// Server is the HTTP API server.
type Server struct {
	Config
	app     *fiber.App
	api     huma.API
	metrics *metrics
	limiter *httpx.Limiter[tenant.RateLimited]
	proxies *httpx.Proxies
	conns   *httpx.Conns
	memory  *tenant.Budget
	turns   *httpx.Turns[turnKey]
	// bulkTurns are those of requests with a large body, which also need one of turns.
	bulkTurns *httpx.Turns[turnKey]
	origin    allowedOrigins
	// stopping is closed when Shutdown begins, to end event streams.
	stopping chan struct{}
	exports  *exports
	feeds    *feeds
	closing  context.Context // of responses that outlive their handlers
	close    func()

	mu        sync.Mutex
	stopped   bool
	listeners []net.Listener
}

// New returns a Server. It does no I/O.
func New(c Config) *Server {
	c.Cache = cmp.Or(c.Cache, NewCache())
	c.Registry = cmp.Or(c.Registry, prometheus.NewRegistry())
	c.Log = cmp.Or(c.Log, slog.Default())
	c.ImportFile = cmp.Or(c.ImportFile, defaultImportFile)
	c.RequestTimeout = cmp.Or(c.RequestTimeout, 30*time.Second)
	c.ReadTimeout = cmp.Or(c.ReadTimeout, 15*time.Second)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, time.Minute)
	c.ExportTimeout = cmp.Or(c.ExportTimeout, time.Hour)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, 75*time.Second)
	s := &Server{Config: c.revoking(), metrics: newMetrics(c.Registry, c.Cache), limiter: newLimiter(c.Rates, c.Log), stopping: make(chan struct{})}
	s.proxies = &httpx.Proxies{Trusted: c.TrustedProxies, Log: c.Log}
	s.conns = httpx.NewConns(c.Registry, s.proxies)
	s.memory = newMemory()
	s.turns, s.bulkTurns = httpx.NewTurns[turnKey](maxUserRequests), httpx.NewTurns[turnKey](maxUserBulk)
	s.exports = newExports()
	s.feeds = newFeeds(c.Imports)
	s.closing, s.close = context.WithCancel(context.Background())
	s.app = fiber.New(fiber.Config{
		AppName:      "Mnemo",
		ErrorHandler: s.handleError,
		// Request strings outlive their handler in caches and contexts.
		Immutable:             true,
		CaseSensitive:         true,
		UnescapePath:          true,
		DisableStartupMessage: true,
		// Bodies are read after authentication, up to the limit of their route;
		// see httpx.Body.
		StreamRequestBody:            true,
		DisablePreParseMultipartForm: true,
		ReadBufferSize:               16 << 10, // the request line and headers
		ReadTimeout:                  c.ReadTimeout,
		WriteTimeout:                 c.WriteTimeout,
		IdleTimeout:                  c.IdleTimeout,
	})
	httpx.Prepare(s.app.Server(), c.ReadTimeout, s.allowedMethods)
	s.app.Use(s.middleware)
	s.api = humafiber.New(s.app, apiConfig())
	s.routes()
	finishOpenAPI(s.api.OpenAPI())
	s.app.Get("/openapi.json", s.serveOpenAPI())
	s.app.Get(reference.Path, serveReference)
	s.app.Get(reference.Path+"/:file", serveReference)
	s.addDashboard()
	return s
}

// apiConfig configures huma for the contract: its error and array formats, and
// none of huma's own routes and links.
func apiConfig() huma.Config {
	httpx.ConfigureHuma()
	c := huma.DefaultConfig("Mnemo", "1.0.0")
	c.OpenAPIPath, c.DocsPath, c.SchemasPath = "", "", ""
	c.CreateHooks = nil // they add $schema to responses
	c.AllowAdditionalPropertiesByDefault = true
	c.Formats = map[string]huma.Format{
		"application/json": {Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: httpx.DecodeJSON},
	}
	c.Info.Description = apiDescription
	c.Info.License = &huma.License{Name: "Apache 2.0", Identifier: "Apache-2.0"}
	c.Servers = []*huma.Server{{URL: "/", Description: "The server that serves this document."}}
	c.Tags = tags
	c.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		bearer: {Type: "http", Scheme: "bearer", Description: "The user's API token, from the dashboard or the administrator, or the key of an application. " +
			"With a key, the header `X-Mnemo-User` is required: it names the user for whom the application acts, UTF-8 text of 1 to 256 bytes without control characters. It must not be blank, begin or end with a space, or be `.`, `..` or `*`. " +
			"The first write creates the user; a read for an unknown user behaves like an empty account. The header is refused with a user's token."},
	}
	return c
}

// schemaName returns the schema name of a type: bucketBody becomes Bucket.
func schemaName(t reflect.Type, hint string) string {
	return strings.TrimSuffix(huma.DefaultSchemaNamer(t, hint), "Body")
}

// Serve accepts connections on the listener until Shutdown, then returns nil.
func (s *Server) Serve(l net.Listener) error {
	if !s.addListener(l) {
		return nil
	}
	if err := s.app.Listener(s.conns.Listener(l)); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("serve HTTP: %w", err)
	}
	return nil
}

// addListener registers the listener, or closes it and returns false after Shutdown.
func (s *Server) addListener(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = append(s.listeners, l)
	if s.stopped {
		_ = l.Close()
	}
	return !s.stopped
}

// Listen serves on a TCP address, such as ":8080", until Shutdown.
func (s *Server) Listen(ctx context.Context, addr string) error {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	return s.Serve(l)
}

// Shutdown stops accepting connections, ends streams and waits for running
// requests. A concurrent or later Serve returns as well.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	if !s.stopped {
		close(s.stopping)
	}
	s.stopped = true
	s.mu.Unlock()
	err := s.app.ShutdownWithContext(ctx)
	s.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.listeners {
		_ = l.Close() // Fiber closes only listeners that it already serves
	}
	if err != nil {
		return fmt.Errorf("shut down HTTP server: %w", err)
	}
	return nil
}

// MetricsHandler serves the registry's metrics, for a separate port.
func (s *Server) MetricsHandler() http.Handler {
	return promhttp.HandlerFor(s.Registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}
