// Samples of a command's metrics, over HTTP.

package top

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/weft-rdma/weft/cmd/weft/internal/observe"
)

const (
	fetchTime = 5 * time.Second
	maxPage   = 16 << 20 // octets: what is asked may be anything
)

// A Source is where a command serves its metrics.
type Source struct {
	client http.Client
	base   string
	name   string
}

// NewSource returns the source at an address: host:port, a URL, unix:PATH, or the path of a
// socket.
func NewSource(addr string) *Source {
	s := &Source{name: addr, client: http.Client{Timeout: fetchTime}}
	path, unix := strings.CutPrefix(addr, "unix:")
	if unix || strings.Contains(addr, "/") && !strings.Contains(addr, "://") {
		s.base = "http://weft"
		s.client.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		}}
		return s
	}
	addr = strings.TrimSuffix(strings.TrimPrefix(addr, "http://"), "/metrics")
	if strings.HasPrefix(addr, ":") {
		addr = "127.0.0.1" + addr
	}
	s.base = "http://" + strings.TrimSuffix(addr, "/")
	s.client.Transport = &http.Transport{}
	return s
}

// String returns the address as it was given.
func (s *Source) String() string { return s.name }

// Close closes the connections.
func (s *Source) Close() { s.client.CloseIdleConnections() }

func (s *Source) get(ctx context.Context, path string, read func(io.Reader) error) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+path, nil)
	if err != nil {
		return err
	}
	r, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("%s%s answers %s: expected the metrics of a weft command", s.name, path, r.Status)
	}
	return read(io.LimitReader(r.Body, maxPage))
}

// Fetch takes a sample.
func (s *Source) Fetch(ctx context.Context) (*Sample, error) {
	var families map[string]*dto.MetricFamily
	err := s.get(ctx, "/metrics", func(r io.Reader) (err error) {
		p := expfmt.NewTextParser(model.LegacyValidation)
		families, err = p.TextToMetricFamilies(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	sample := sampleOf(families, time.Now())
	if sample == nil {
		return nil, fmt.Errorf("%s has metrics, but none of a weft command", s.name)
	}
	err = s.get(ctx, "/connections", func(r io.Reader) error { return json.NewDecoder(r).Decode(&sample.Connections) })
	return sample, err
}

// Connection is one of a sample.
type Connection = observe.Connection
