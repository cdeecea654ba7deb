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

// Config says where Milvus is and what the collections look like.
type Config struct {
	Address  string // host:port, or https://host:port for TLS
	Username string // "" when Milvus asks for none
	Password string
	// TLS is used when set; an https address alone means the system's roots.
	TLS *tls.Config
	// Prefix goes before the name of every collection, so that installations
	// can share a Milvus: letters, digits and underscores. "" for none.
	Prefix     string
	Dimensions int // length of the vectors
	// CallTimeout bounds every read and write, AdminTimeout the making,
	// loading and dropping of collections and partitions. 0 for 10 s and 60 s.
	CallTimeout  time.Duration
	AdminTimeout time.Duration
}

// Index is the vector store.
type Index struct {
	client client.Client
	config Config
	known  sync.Map // names of collections that are of our schema
	loaded sync.Map // names of collections that were loaded once
	making singleflight.Group
}

// Open prepares the connection. It does not wait for Milvus: calls made while
// it is away fail with Unavailable, and the connection comes back by itself.
func Open(ctx context.Context, config Config) (*Index, error) {
	if config.Address == "" || config.Dimensions < 1 {
		return nil, fault.New(fault.Invalid, "the Milvus address and the vectors' dimensions must be set")
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
		// Connecting eagerly would keep the server from starting while Milvus is away.
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
		grpc.WithStatsHandler(otelgrpc.NewClientHandler()), // a span for each call, when there is a trace
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: 10 * time.Second, Timeout: 5 * time.Second, PermitWithoutStream: true,
		}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 3 * time.Second,
		}),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(math.MaxInt32),
			// The SDK retries an absent server six times, which would cost every
			// search its whole deadline; jobs have their own retries.
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

// Ping asks Milvus whether it is there; Unavailable when not. After a crash
// Milvus answers this long before its collections can be searched.
func (x *Index) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, x.config.CallTimeout)
	defer cancel()
	if _, err := x.client.ListCollections(ctx); err != nil {
		return mapError(err, "ping Milvus")
	}
	return nil
}

// collection is the name Milvus knows a placement's collection by.
func (x *Index) collection(p placement.Location) string { return x.config.Prefix + p.Collection }
