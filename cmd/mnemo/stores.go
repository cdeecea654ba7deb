package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/mnemo-dev/mnemo/internal/embed"
	"github.com/mnemo-dev/mnemo/internal/milvus"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/telemetry"
)

// databaseFlags say where PostgreSQL is, as the role that does not own the tables.
type databaseFlags struct {
	DatabaseURL         string `env:"DATABASE_URL" required:"" help:"PostgreSQL URL of the app's role."`
	DatabaseConnections int32  `env:"MNEMO_DATABASE_CONNECTIONS" default:"20" help:"Most connections to PostgreSQL."`

	metrics *telemetry.Metrics // told when the server's certificate expires; may be nil
}

// milvusFlags say where Milvus is.
type milvusFlags struct {
	MilvusAddress  string `env:"MILVUS_ADDRESS" required:"" help:"host:port of Milvus; https://host:port for TLS."`
	MilvusUsername string `env:"MILVUS_USERNAME" help:"User of Milvus, if it asks for one."`
	MilvusPassword string `env:"MILVUS_PASSWORD" help:"Password of that user."`
	MilvusCA       string `env:"MILVUS_CA" type:"existingfile" help:"PEM file of the authority that signed Milvus' certificate. Default: the system's."`

	metrics *telemetry.Metrics // told when the server's certificate expires; may be nil
}

// embedderFlags say which model turns text into vectors. The operator needs
// only its name and dimensions and never loads it.
type embedderFlags struct {
	Embedder             string        `env:"MNEMO_EMBEDDER" enum:"local,openai" default:"local" help:"Where embeddings come from: the model in this process, or any OpenAI-compatible endpoint (${enum})."`
	ModelDir             string        `env:"MNEMO_MODEL_DIR" type:"path" help:"Folder with model.safetensors and tokenizer.json of all-MiniLM-L6-v2, for the local embedder."`
	EmbeddingsURL        string        `env:"MNEMO_EMBEDDINGS_URL" help:"Base URL of the endpoint, such as https://api.openai.com/v1."`
	EmbeddingsKey        string        `env:"MNEMO_EMBEDDINGS_KEY" help:"Bearer token for the endpoint, if it asks for one."`
	EmbeddingsModel      string        `env:"MNEMO_EMBEDDINGS_MODEL" help:"Name of the model at the endpoint."`
	EmbeddingsDimensions int           `env:"MNEMO_EMBEDDINGS_DIMENSIONS" help:"Length of that model's vectors."`
	EmbeddingsTimeout    time.Duration `env:"MNEMO_EMBEDDINGS_TIMEOUT" default:"30s" help:"Longest wait for one request to the endpoint."`
}

// localGeneration is what the local embedder makes.
var localGeneration = postgres.Generation{Model: "all-MiniLM-L6-v2", Dimensions: 384}

// generation names what the embedder makes, without loading it.
func (f embedderFlags) generation() (postgres.Generation, error) {
	if f.Embedder == "local" {
		return localGeneration, nil
	}
	if f.EmbeddingsModel == "" || f.EmbeddingsDimensions < 1 {
		return postgres.Generation{}, fmt.Errorf("--embedder=openai needs --embeddings-model and --embeddings-dimensions")
	}
	return postgres.Generation{Model: f.EmbeddingsModel, Dimensions: f.EmbeddingsDimensions}, nil
}

// open makes the embedder.
func (f embedderFlags) open() (retrieve.Embedder, error) {
	if f.Embedder == "local" {
		if f.ModelDir == "" {
			return nil, fmt.Errorf("--embedder=local needs --model-dir, the folder of all-MiniLM-L6-v2")
		}
		local, err := embed.OpenLocal(f.ModelDir, embed.LocalOptions{})
		if err != nil {
			return nil, err
		}
		if local.Model() != localGeneration.Model {
			return nil, fmt.Errorf("%s holds %s and not the published %s: vectors of both cannot share an index", f.ModelDir, local.Model(), localGeneration.Model)
		}
		return local, nil
	}
	return embed.NewOpenAI(embed.OpenAIConfig{
		BaseURL: f.EmbeddingsURL, APIKey: f.EmbeddingsKey,
		Model: f.EmbeddingsModel, Dimensions: f.EmbeddingsDimensions, Timeout: f.EmbeddingsTimeout,
	})
}

// open prepares the connection to Milvus; it need not be there yet.
func (f milvusFlags) open(ctx context.Context, dimensions int) (*milvus.Index, error) {
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
			return nil, fmt.Errorf("--milvus-ca: %s holds no certificate", f.MilvusCA)
		}
		config.TLS.RootCAs = roots
	}
	return milvus.Open(ctx, config)
}

// stores are what every command but migrate works with.
type stores struct {
	db    *postgres.DB
	index *milvus.Index
}

// openStores connects to PostgreSQL and prepares Milvus.
func openStores(ctx context.Context, d databaseFlags, m milvusFlags, g postgres.Generation) (*stores, error) {
	config := postgres.Config{URL: d.DatabaseURL, MaxConns: d.DatabaseConnections, Generation: g}
	if d.metrics != nil {
		config.Certificate = d.metrics.Certificate("postgresql")
	}
	db, err := postgres.Open(ctx, config)
	if err != nil {
		return nil, err
	}
	index, err := m.open(ctx, g.Dimensions)
	if err != nil {
		db.Close()
		return nil, err
	}
	return &stores{db: db, index: index}, nil
}

func (s *stores) close() {
	_ = s.index.Close() // nothing is lost by a connection that ends badly
	s.db.Close()
}
