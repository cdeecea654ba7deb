package httpx

import (
	"context"

	"github.com/gofiber/fiber/v2"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// StartSpan starts the span of a request, in the client's trace if it sends one.
// Without a collector, no span is created.
func StartSpan(ctx context.Context, c *fiber.Ctx) (context.Context, trace.Span) {
	if parent := c.Get("Traceparent"); parent != "" {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": parent, "tracestate": c.Get("Tracestate")})
	}
	return otel.Tracer("github.com/mnemo-dev/mnemo").Start(ctx, "request", trace.WithSpanKind(trace.SpanKindServer))
}

// EndSpan sets the name, attributes and status of the span. It records no request
// or response content.
func EndSpan(span trace.Span, c *fiber.Ctx, route string) {
	if !span.IsRecording() {
		return
	}
	status := c.Response().StatusCode()
	span.SetName(c.Method() + " " + route)
	span.SetAttributes(attribute.String("http.request.method", c.Method()), attribute.String("http.route", route),
		attribute.Int("http.response.status_code", status), attribute.String("mnemo.request_id", string(c.Response().Header.Peek(HeaderRequestID))))
	if status >= fiber.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
}
