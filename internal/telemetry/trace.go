package telemetry

import (
	"context"
	"fmt"
	"log/slog"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace/noop"
)

// TraceConfig configures tracing from flags and the environment. Headers and
// certificates come from OpenTelemetry's own variables, such as
// OTEL_EXPORTER_OTLP_HEADERS.
type TraceConfig struct {
	Endpoint string  `name:"otlp-endpoint" env:"OTEL_EXPORTER_OTLP_ENDPOINT" help:"Base URL of an OpenTelemetry collector that accepts OTLP over HTTP, such as http://collector:4318. Default: tracing is off."`
	Ratio    float64 `name:"trace-ratio" env:"MNEMO_TRACE_RATIO" default:"0.1" help:"Fraction of requests to trace, from 0 to 1. Requests that the client traces are always traced."`
}

// StartTracing exports spans to the collector until stop is called, which flushes
// the remaining ones. Without an endpoint, spans are not even created.
func StartTracing(ctx context.Context, c TraceConfig, service string, log *slog.Logger) (stop func(context.Context) error, err error) {
	if c.Endpoint == "" {
		otel.SetTracerProvider(noop.NewTracerProvider()) // the default one allocates a span for each call, for instrumentation that attaches later
		return func(context.Context) error { return nil }, nil
	}
	exporter, err := otlptracehttp.New(ctx) // reads the endpoint from the environment
	if err != nil {
		return nil, fmt.Errorf("create trace exporter (--otlp-endpoint): %w", err)
	}
	provider := trace.NewTracerProvider(trace.WithBatcher(exporter),
		trace.WithSampler(trace.ParentBased(trace.TraceIDRatioBased(c.Ratio))),
		trace.WithResource(resource.NewSchemaless(semconv.ServiceName(service), semconv.ServiceVersion(Version()))))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("trace export failed", "error", err) }))
	otel.SetTracerProvider(provider)
	return provider.Shutdown, nil
}
