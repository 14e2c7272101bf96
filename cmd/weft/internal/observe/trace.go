// Tracing: a span of OpenTelemetry for each call, sent to a collector by OTLP over HTTP.

package observe

import (
	"context"
	"errors"
	"net"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/attribute"
	status "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

const (
	exportTime = 500 * time.Millisecond // for the last spans, at the end
	maxSpans   = 8192                   // that wait for the collector; further ones are dropped
)

// A Tracer makes a span for each call.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// NewTracer returns a Tracer that exports to the collector at a URL, such as
// http://127.0.0.1:4318. A collector that does not answer costs no more than the memory of
// the spans that wait for it.
func NewTracer(ctx context.Context, endpoint, version string) (*Tracer, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("expected the URL of a collector, such as http://127.0.0.1:4318")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(u.String()))
	if err != nil {
		return nil, err
	}
	provider := sdk.NewTracerProvider(
		sdk.WithBatcher(exporter, sdk.WithMaxQueueSize(maxSpans)),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", "weft"), attribute.String("service.version", version))),
	)
	return &Tracer{provider, provider.Tracer("github.com/weft-rdma/weft")}, nil
}

// Close exports what is left. A collector that does not take it is no failure of the command.
func (t *Tracer) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), exportTime)
	defer cancel()
	_ = t.provider.Shutdown(ctx)
	return nil
}

// begin begins the span of a call.
func (t *Tracer) begin(ctx context.Context, s *served) (context.Context, trace.Span) {
	return t.tracer.Start(ctx, s.program+"/"+s.name, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(s.began))
}

// end ends it, with the conventions of OpenTelemetry for RPC.
func (t *Tracer) end(span trace.Span, s *served) {
	host, _, _ := net.SplitHostPort(s.Remote.String())
	span.SetAttributes(
		attribute.String("rpc.system", "onc_rpc"),
		attribute.String("rpc.service", s.program),
		attribute.String("rpc.method", s.name),
		attribute.String("onc_rpc.version", s.version),
		attribute.Int64("onc_rpc.xid", int64(s.XID)),
		attribute.String("network.transport", s.Network),
		attribute.String("client.address", host),
		attribute.String("weft.status", s.status),
		attribute.Int("weft.received_bytes", len(s.Message)),
		attribute.Int("weft.transmitted_bytes", s.replied),
	)
	if s.export != "" {
		span.SetAttributes(attribute.String("weft.export", s.export))
	}
	if s.status != "OK" {
		span.SetStatus(status.Error, s.status)
	}
	span.End(trace.WithTimestamp(s.began.Add(s.took)))
}
