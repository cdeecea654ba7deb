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
)

// TraceConfig says where traces go; kong reads it from flags and environment.
// Headers, certificates and the like are taken from OpenTelemetry's own
// variables (OTEL_EXPORTER_OTLP_HEADERS, …).
type TraceConfig struct {
	Endpoint string  `name:"otlp-endpoint" env:"OTEL_EXPORTER_OTLP_ENDPOINT" help:"Base URL of an OpenTelemetry collector that takes OTLP over HTTP, such as http://collector:4318. Default: no traces."`
	Ratio    float64 `name:"trace-ratio" env:"MNEMO_TRACE_RATIO" default:"0.1" help:"Part of the requests that is traced, from 0 to 1; those whose client traces them are always."`
}

// StartTracing sends spans to the collector until stop is called, which sends
// what is left. Without an endpoint it does nothing.
func StartTracing(ctx context.Context, c TraceConfig, service string, log *slog.Logger) (stop func(context.Context) error, err error) {
	if c.Endpoint == "" {
		return func(context.Context) error { return nil }, nil
	}
	exporter, err := otlptracehttp.New(ctx) // it reads the endpoint from the environment
	if err != nil {
		return nil, fmt.Errorf("send traces (--otlp-endpoint): %w", err)
	}
	provider := trace.NewTracerProvider(trace.WithBatcher(exporter),
		trace.WithSampler(trace.ParentBased(trace.TraceIDRatioBased(c.Ratio))),
		trace.WithResource(resource.NewSchemaless(semconv.ServiceName(service), semconv.ServiceVersion(Version()))))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces are lost", "error", err) }))
	otel.SetTracerProvider(provider)
	return provider.Shutdown, nil
}
