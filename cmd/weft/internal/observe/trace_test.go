package observe

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/nfs"
)

func TestACallIsASpan(t *testing.T) {
	nettest.CheckLeaks(t)
	got := make(chan *collector.ExportTraceServiceRequest, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		var m collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(b, &m); err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		got <- &m
	}))
	defer s.Close()
	tracer, err := NewTracer(t.Context(), s.URL, "1")
	if err != nil {
		t.Fatal(err)
	}
	o := New(Config{Trace: tracer})
	if _, err := o.Handler(answering(nfs.ErrNoEnt)).ServeRPC(t.Context(), request(nfs.ProcLookup)); err != nil {
		t.Fatal(err)
	}
	if err := tracer.Close(); err != nil {
		t.Fatal(err)
	}
	spans := (<-got).ResourceSpans[0].ScopeSpans[0].Spans
	if len(spans) != 1 || spans[0].Name != "nfs/LOOKUP" || spans[0].Status.Message != "NFS3ERR_NOENT" {
		t.Fatalf("got %v", spans)
	}
	for _, a := range spans[0].Attributes {
		if a.Key == "client.address" && a.Value.GetStringValue() == "192.0.2.7" {
			return
		}
	}
	t.Errorf("the client is missing in %v", spans[0].Attributes)
}

func TestCollectorsHaveURLs(t *testing.T) {
	for _, bad := range []string{"", "127.0.0.1:4318", "ftp://h", "http://"} {
		if _, err := NewTracer(t.Context(), bad, ""); err == nil {
			t.Errorf("%q is taken for the URL of a collector", bad)
		}
	}
}
