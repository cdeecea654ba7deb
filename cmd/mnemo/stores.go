package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/mnemo-dev/mnemo/internal/embed"
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/milvus"
	"github.com/mnemo-dev/mnemo/internal/onnx"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/telemetry"
	"github.com/mnemo-dev/mnemo/internal/tokens"
)

// databaseFlags configure the connection to PostgreSQL as the application role.
type databaseFlags struct {
	DatabaseURL         string `env:"DATABASE_URL" required:"" help:"PostgreSQL URL of the application role."`
	DatabaseDirectURL   string `env:"DATABASE_DIRECT_URL" help:"URL that reaches PostgreSQL directly if --database-url points to a pooler. Notifications and the job queue use it."`
	DatabaseConnections int32  `env:"MNEMO_DATABASE_CONNECTIONS" default:"20" help:"Maximum number of connections to PostgreSQL."`
	RestoreID           string `env:"MNEMO_RESTORE_ID" help:"Change this value after you restore the database without pg_restore, such as from a snapshot."`

	metrics *telemetry.Metrics // records the expiry of the server's certificate; may be nil
	traced  bool               // statements have spans
}

// milvusFlags configure the vector index.
type milvusFlags struct {
	Index          string `env:"MNEMO_INDEX" enum:"milvus,none" default:"milvus" help:"Index of the vectors: milvus, or none. With none, each search scores all vectors of the user, which are in PostgreSQL (docs/install.md)."`
	MilvusAddress  string `env:"MILVUS_ADDRESS" help:"Address of Milvus: host:port, or https://host:port for TLS. Required with --index=milvus. With --index=none, it is used to drop the partitions that tenants left."`
	MilvusUsername string `env:"MILVUS_USERNAME" help:"Milvus user, if authentication is enabled."`
	MilvusPassword string `env:"MILVUS_PASSWORD" help:"Password of the Milvus user."`
	CellsDir       string `env:"MNEMO_CELLS_DIR" type:"path" help:"Directory with the connections to cells, <cell>.json for each. The operator writes them to the Secret that is mounted there (docs/cells.md)."`
	MilvusCA       string `env:"MILVUS_CA" type:"existingfile" help:"PEM file of the CA that signed Milvus' certificate. Default: the system's CAs."`

	metrics *telemetry.Metrics // records the expiry of the server's certificate; may be nil
}

// embedderFlags configure the embedding model. The operator needs only its name
// and dimensions and never loads it.
type embedderFlags struct {
	Embedder             string        `env:"MNEMO_EMBEDDER" enum:"local,openai" default:"local" help:"Source of embeddings: local, the model in this process, or openai, an OpenAI-compatible endpoint."`
	Model                string        `env:"MNEMO_MODEL" enum:"${models}" default:"${defaultModel}" help:"Model of the local embedder: ${enum}."`
	ModelDir             string        `env:"MNEMO_MODEL_DIR" type:"path" help:"Directory with model.onnx and tokenizer.json of the model, for the local embedder."`
	ModelThreads         int           `env:"MNEMO_MODEL_THREADS" default:"1" help:"Threads that the local embedder uses for one text."`
	ONNXRuntime          string        `name:"onnxruntime" env:"MNEMO_ONNXRUNTIME" default:"${onnxruntime}" help:"Shared library of onnxruntime, for the local embedder: a path, or a name in the loader's search path."`
	EmbeddingsURL        string        `env:"MNEMO_EMBEDDINGS_URL" help:"Base URL of the embeddings endpoint, such as https://api.openai.com/v1."`
	EmbeddingsKey        string        `env:"MNEMO_EMBEDDINGS_KEY" help:"Bearer token for the embeddings endpoint, if it requires one."`
	EmbeddingsModel      string        `env:"MNEMO_EMBEDDINGS_MODEL" help:"Name of the model at the embeddings endpoint."`
	EmbeddingsDimensions int           `env:"MNEMO_EMBEDDINGS_DIMENSIONS" help:"Length of the model's vectors."`
	EmbeddingsRevision   string        `env:"MNEMO_EMBEDDINGS_REVISION" help:"Revision of the model at the embeddings endpoint. Change it when the endpoint serves another model under the same name."`
	EmbeddingsTimeout    time.Duration `env:"MNEMO_EMBEDDINGS_TIMEOUT" default:"30s" help:"Timeout of a request to the embeddings endpoint."`
}

// defaultGeneration is for commands that use no vectors.
var defaultGeneration = mustFindModel(embed.DefaultModel).Generation()

func mustFindModel(name string) embed.Model {
	m, err := embed.FindModel(name)
	if err != nil {
		panic(err)
	}
	return m
}

// modelVars are the variables of the tags in embedderFlags.
func modelVars() kong.Vars {
	var names []string
	for _, m := range embed.Models() {
		names = append(names, m.Name)
	}
	return kong.Vars{"models": strings.Join(names, ","), "defaultModel": embed.DefaultModel, "onnxruntime": onnx.DefaultLibrary}
}

// generation describes the vectors of the embedder without loading its model.
func (f embedderFlags) generation() (placement.Generation, error) {
	if f.Embedder == "local" {
		m, err := embed.FindModel(f.Model)
		return m.Generation(), err
	}
	if f.EmbeddingsModel == "" || f.EmbeddingsDimensions < 1 {
		return placement.Generation{}, fmt.Errorf("--embedder=openai requires --embeddings-model and --embeddings-dimensions")
	}
	return placement.Generation{Model: f.EmbeddingsModel, Revision: f.EmbeddingsRevision, Dimensions: f.EmbeddingsDimensions}, nil
}

// open returns the embedder.
func (f embedderFlags) open() (retrieve.Embedder, error) {
	if f.Embedder == "local" {
		if f.ModelDir == "" {
			return nil, fmt.Errorf("--embedder=local requires --model-dir, the directory of %s", f.Model)
		}
		return embed.OpenLocal(embed.LocalConfig{
			Model: f.Model, Dir: f.ModelDir, Library: f.ONNXRuntime, Threads: f.ModelThreads,
		})
	}
	return embed.NewOpenAI(embed.OpenAIConfig{
		BaseURL: f.EmbeddingsURL, APIKey: f.EmbeddingsKey,
		Model: f.EmbeddingsModel, Dimensions: f.EmbeddingsDimensions, Timeout: f.EmbeddingsTimeout,
	})
}

// unindexed reports whether tenants are placed in no index.
func (f milvusFlags) unindexed() bool { return f.Index == "none" }

// open prepares the connections to Milvus and to the cells, which need not be available yet. They
// follow --cells-dir until the context ends.
func (f milvusFlags) open(ctx context.Context, dimensions int, log *slog.Logger) (*milvus.Router, error) {
	home, err := f.home(ctx, dimensions, log)
	if err != nil {
		return nil, err
	}
	router := milvus.NewRouter(home, dimensions, log)
	if f.CellsDir == "" {
		return router, nil
	}
	if err := router.Load(f.CellsDir); err != nil {
		return nil, errors.Join(fmt.Errorf("--cells-dir: %w", err), router.Close())
	}
	go router.Watch(ctx, f.CellsDir)
	return router, nil
}

// home returns the default cell: without an index and an address, indexing.NoIndex.
func (f milvusFlags) home(ctx context.Context, dimensions int, log *slog.Logger) (milvus.Backend, error) {
	switch {
	case f.MilvusAddress != "":
		return f.connect(ctx, dimensions)
	case f.unindexed():
		return indexing.NoIndex{Log: log}, nil
	}
	return nil, errors.New("--milvus-address (MILVUS_ADDRESS) is required unless --index=none")
}

func (f milvusFlags) connect(ctx context.Context, dimensions int) (*milvus.Index, error) {
	config := milvus.Config{
		Address: f.MilvusAddress, Username: f.MilvusUsername, Password: f.MilvusPassword, Dimensions: dimensions,
	}
	if f.MilvusCA != "" || strings.HasPrefix(f.MilvusAddress, "https://") {
		config.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		if f.metrics != nil {
			config.TLS.VerifyConnection = f.metrics.Certificate("milvus")
		}
	}
	if f.MilvusCA != "" {
		pem, err := os.ReadFile(f.MilvusCA)
		if err != nil {
			return nil, fmt.Errorf("read --milvus-ca: %w", err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--milvus-ca: no certificate in %s", f.MilvusCA)
		}
		config.TLS.RootCAs = roots
	}
	return milvus.Open(ctx, config)
}

// stores are the connections to PostgreSQL and to the vector index.
type stores struct {
	db    *postgres.DB
	index *milvus.Router
}

// milvus returns the connection to the default Milvus, or nil if there is none.
func (s *stores) milvus() *milvus.Index {
	m, _ := s.index.Home().(*milvus.Index)
	return m
}

// openStores connects to PostgreSQL and prepares the vector index.
func openStores(ctx context.Context, d databaseFlags, m milvusFlags, g placement.Generation, log *slog.Logger) (*stores, error) {
	config := postgres.Config{URL: d.DatabaseURL, DirectURL: d.DatabaseDirectURL, MaxConns: d.DatabaseConnections, Generation: g, RestoreID: d.RestoreID,
		CountTokens: tokens.Count, Unindexed: m.unindexed(), Traced: d.traced}
	if d.metrics != nil {
		config.Certificate = d.metrics.Certificate("postgresql")
	}
	db, err := postgres.Open(ctx, config)
	if err != nil {
		return nil, err
	}
	index, err := m.open(ctx, g.Dimensions, log)
	if err != nil {
		db.Close()
		return nil, err
	}
	return &stores{db: db, index: index}, nil
}

func (s *stores) close() {
	_ = s.index.Close() // no data depends on closing the connection cleanly
	s.db.Close()
}
