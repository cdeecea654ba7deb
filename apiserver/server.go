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
	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/oauth"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/trace"
)

// Config is what a Server works with. Memories, Chats, Imports, Accounts and Tokens are
// required.
type Config struct {
	Memories *memory.Service
	Chats    *chat.Service
	Imports  *importer.Service
	Accounts *account.Service
	Tokens   tenant.TokenStore
	// Rates counts requests for all replicas; nil: each counts for itself.
	Rates tenant.RateStore
	// Cache remembers identities; an empty one when nil. Whoever listens to
	// the database's notifications must be given the same one.
	Cache *Cache
	// Sessions, Access and Holdings are what the dashboard needs beside; without
	// Sessions there is none.
	Sessions tenant.SessionStore
	Access   tenant.AccessStore
	Holdings tenant.HoldingStore
	// Providers are the identity providers people may sign in to the dashboard with.
	Providers []*dashboard.Provider
	// TrustedProxies are whose X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix
	// URL is where users reach the server, such as https://mnemo.example.com;
	// nil when it does not know.
	URL *url.URL
	// Programs lets users give programs access to /mcp, on a page of the
	// dashboard; nil: programs need the user's token.
	Programs *oauth.Service
	// Version names the build to those that ask.
	Version string
	// Checks are asked by /readyz, by name; nil errors mean ready.
	Checks map[string]func(context.Context) error
	// Stages is told what requests spend their time on; nobody when nil.
	Stages trace.Recorder
	// Registry takes the server's metrics; one of its own when nil.
	Registry *prometheus.Registry
	Log      *slog.Logger // slog.Default() when nil

	ImportFile     int64         // largest file of an import, bytes; 4 GiB when 0
	RequestTimeout time.Duration // deadline of a handler's context; 30 s when 0
	ReadTimeout    time.Duration // for a request's headers, and as much for its body's first bytes; 15 s when 0
	WriteTimeout   time.Duration // for a whole answer, and for each piece of an export; 1 min when 0
	ExportTimeout  time.Duration // for a whole export, however slowly it is taken; 1 h when 0
	IdleTimeout    time.Duration // between requests of a connection; 75 s when 0
}

// Server answers the HTTP contract.
type Server struct {
	Config
	app     *fiber.App
	api     huma.API
	metrics *metrics
	limiter *limiter
	// stopping is closed when Shutdown begins: streams would never end by themselves.
	stopping chan struct{}
	exports  exports
	closing  context.Context // of answers that outlive their handlers
	close    func()

	mu        sync.Mutex
	stopped   bool
	listeners []net.Listener
}

// New makes a Server; it does no I/O.
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
	s := &Server{Config: c, metrics: newMetrics(c.Registry, c.Cache), limiter: newLimiter(c.Rates, c.Log), stopping: make(chan struct{})}
	s.closing, s.close = context.WithCancel(context.Background())
	s.app = fiber.New(fiber.Config{
		AppName:      "Mnemo",
		ErrorHandler: s.answerError,
		// Strings of a request outlive its handler in caches and contexts.
		Immutable:             true,
		CaseSensitive:         true,
		UnescapePath:          true,
		DisableStartupMessage: true,
		// A body is read by the handler that wants it, after authentication
		// and up to its own limit; see body.go.
		StreamRequestBody:            true,
		DisablePreParseMultipartForm: true,
		ReadBufferSize:               16 << 10, // the request line and headers
		ReadTimeout:                  c.ReadTimeout,
		WriteTimeout:                 c.WriteTimeout,
		IdleTimeout:                  c.IdleTimeout,
	})
	s.app.Server().Handler = s.refuseMethods(s.app.Server().Handler)
	s.app.Server().HeaderReceived = s.bodyTimes
	s.app.Server().ErrorHandler = endAfter(s.app.Server().ErrorHandler)
	s.app.Use(s.edge)
	s.api = humafiber.New(s.app, apiConfig())
	s.routes()
	finishOpenAPI(s.api.OpenAPI())
	s.app.Get("/openapi.json", s.serveOpenAPI())
	s.addDashboard()
	return s
}

// apiConfig configures huma: errors and arrays as the contract wants them, no
// routes and no links of its own.
func apiConfig() huma.Config {
	configureHuma()
	c := huma.DefaultConfig("Mnemo", "1.0.0")
	c.OpenAPIPath, c.DocsPath, c.SchemasPath = "", "", ""
	c.CreateHooks = nil // they add $schema to answers
	c.AllowAdditionalPropertiesByDefault = true
	c.Formats = map[string]huma.Format{
		"application/json": {Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: decodeJSON},
	}
	c.Info.Description = apiDescription
	c.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		bearer: {Type: "http", Scheme: "bearer", Description: "The token of a user, from the Secret its operator gave out."},
	}
	return c
}

// schemaName names a type in the OpenAPI file: bucketBody is Bucket there.
func schemaName(t reflect.Type, hint string) string {
	return strings.TrimSuffix(huma.DefaultSchemaNamer(t, hint), "Body")
}

// configureHuma sets what huma keeps in package variables, once.
var configureHuma = sync.OnceFunc(func() {
	huma.DefaultArrayNullable = false
	huma.NewError = func(status int, msg string, errs ...error) huma.StatusError {
		return humaError(nil, status, msg, errs...)
	}
	huma.NewErrorWithContext = humaError
})

// Serve answers on the listener until Shutdown; then it returns nil.
func (s *Server) Serve(l net.Listener) error {
	if !s.began(l) {
		return nil
	}
	if err := s.app.Listener(listener{l}); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("serve HTTP: %w", err)
	}
	return nil
}

// began notes the listener, or closes it when Shutdown came before.
func (s *Server) began(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = append(s.listeners, l)
	if s.stopped {
		_ = l.Close()
	}
	return !s.stopped
}

// Listen answers on a TCP address, such as ":8080", until Shutdown.
func (s *Server) Listen(ctx context.Context, addr string) error {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	return s.Serve(l)
}

// Shutdown stops taking connections, ends streams and waits for running
// requests. A Serve that has only just begun, or begins later, returns too.
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
		_ = l.Close() // Fiber closes only those it has begun to serve
	}
	if err != nil {
		return fmt.Errorf("shut the HTTP server down: %w", err)
	}
	return nil
}

// MetricsHandler serves the registry's metrics, for a port of its own.
func (s *Server) MetricsHandler() http.Handler {
	return promhttp.HandlerFor(s.Registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}
