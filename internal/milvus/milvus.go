package milvus

import (
	"context"
	"crypto/tls"
	"fmt"
	"math"
	"sync"
	"time"

	grpcretry "github.com/grpc-ecosystem/go-grpc-middleware/retry"
	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"golang.org/x/sync/singleflight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

var (
	_ retrieve.Index       = (*Index)(nil)
	_ placement.Partitions = (*Index)(nil)
)

// Config configures the connection to Milvus and the collections.
type Config struct {
	Address  string // host:port, or https://host:port for TLS
	Username string // "" without authentication
	Password string
	// TLS enables TLS; an https address alone uses the system's root certificates.
	TLS *tls.Config
	// Prefix is prepended to the names of collections, so that installations can
	// share a Milvus. It consists of letters, digits and underscores.
	Prefix string
	// Dimensions is the length of the vectors of a placement that does not name it.
	Dimensions int
	// CallTimeout bounds every read and write (default 10 s); AdminTimeout bounds
	// creating, loading and dropping collections and partitions (default 60 s).
	CallTimeout  time.Duration
	AdminTimeout time.Duration
}

// Index is the vector index in Milvus.
type Index struct {
	client client.Client
	config Config
	known  sync.Map // names of collections with the expected schema
	loaded sync.Map // names of collections that have been loaded
	making singleflight.Group
}

// Open prepares the connection without waiting for Milvus. Calls return Unavailable
// until it is reachable; the connection is re-established automatically.
func Open(ctx context.Context, config Config) (*Index, error) {
	if config.Address == "" || config.Dimensions < 1 {
		return nil, fault.New(fault.Invalid, "the Milvus address and the vector dimensions are required")
	}
	if config.CallTimeout == 0 {
		config.CallTimeout = 10 * time.Second
	}
	if config.AdminTimeout == 0 {
		config.AdminTimeout = time.Minute
	}
	c, err := client.NewClient(ctx, client.Config{
		Address:       config.Address,
		Username:      config.Username,
		Password:      config.Password,
		EnableTLSAuth: config.TLS != nil,
		// A blocking connect would prevent the server from starting without Milvus.
		DisableConn: true,
		DialOptions: dialOptions(config),
		RetryRateLimit: &client.RetryRateLimitOption{
			MaxRetry: 3, MaxBackoff: 300 * time.Millisecond,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("open Milvus: %w", err)
	}
	return &Index{client: c, config: config}, nil
}

func dialOptions(config Config) []grpc.DialOption {
	options := []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(keepStatus),
		grpc.WithStatsHandler(otelgrpc.NewClientHandler()), // one span per call of a traced request
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: 10 * time.Second, Timeout: 5 * time.Second, PermitWithoutStream: true,
		}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 3 * time.Second,
		}),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(math.MaxInt32),
			// The SDK's six retries would use up the deadline of every search. Jobs
			// have their own retries.
			grpcretry.WithMax(0),
		),
	}
	if config.TLS != nil {
		options = append(options, grpc.WithTransportCredentials(credentials.NewTLS(config.TLS)))
	}
	return options
}

// Close ends the connection.
func (x *Index) Close() error {
	if err := x.client.Close(); err != nil {
		return fmt.Errorf("close Milvus: %w", err)
	}
	return nil
}

// Ping returns Unavailable if Milvus cannot be reached. After a crash, Milvus responds
// to Ping long before its collections can be searched.
func (x *Index) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, x.config.CallTimeout)
	defer cancel()
	if _, err := x.client.ListCollections(ctx); err != nil {
		return mapError(err, "ping Milvus")
	}
	return nil
}

// collection returns the name of a placement's collection in Milvus.
func (x *Index) collection(p placement.Location) string { return x.config.Prefix + p.Collection }
