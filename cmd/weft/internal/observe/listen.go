// The HTTP server. Scrapers may be hostile: all that they can take is limited.

package observe

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weft-rdma/weft/oncrpc"
)

const (
	maxConnections = 32               // of scrapers
	maxScrapes     = 4                // at a time
	maxHeader      = 8 << 10          // octets of a request's header, 4 KiB of which net/http adds itself
	readTime       = 5 * time.Second  // for a request to arrive
	writeTime      = 10 * time.Second // for a response to be received
	idleTime       = 2 * time.Minute  // between two requests
)

// An AddressError is about a text that is not an address.
type AddressError struct{ Text string }

func (e *AddressError) Error() string {
	return fmt.Sprintf("%q is not an address: expected HOST:PORT, :PORT or unix:PATH", e.Text)
}

// Listen listens on an address: host:port, this machine only if there is no host, or
// unix:PATH, a socket for this user alone. A socket that nobody listens on is replaced.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return listenUnix(ctx, path)
	}
	host, port, err := net.SplitHostPort(addr)
	if err == nil && port != "" {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil || port == "" {
		return nil, &AddressError{addr}
	}
	var lc net.ListenConfig
	return lc.Listen(ctx, "tcp", net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port))
}

// Adopt returns a listener of Listen for the same address in another process, whose socket
// ln is.
func Adopt(ln net.Listener, addr string) net.Listener {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return &private{ln, path}
	}
	return ln
}

// private removes its socket when it is closed.
type private struct {
	net.Listener
	path string
}

func (p *private) Addr() net.Addr { return &net.UnixAddr{Name: p.path, Net: "unix"} }

func (p *private) Close() error {
	if p.path != "" {
		_ = os.Remove(p.path) // removed by others
	}
	return p.Listener.Close()
}

// SyscallConn implements syscall.Conn.
func (p *private) SyscallConn() (syscall.RawConn, error) {
	return p.Listener.(syscall.Conn).SyscallConn()
}

func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if c, err := net.Dial("unix", path); err == nil {
		c.Close()
		return nil, fmt.Errorf("%s: another process listens there", path)
	} else if errors.Is(err, syscall.ECONNREFUSED) {
		if i, err := os.Lstat(path); err == nil && i.Mode()&os.ModeSocket != 0 {
			_ = os.Remove(path) // else Listen fails
		}
	}
	return listenPrivate(ctx, path)
}

// A Scraped is a running HTTP server.
type Scraped struct {
	http http.Server
	ln   net.Listener
	done chan struct{}
}

// Serve serves at ln until Close. It owns ln.
func (o *Observer) Serve(ln net.Listener) *Scraped {
	s := &Scraped{ln: ln, done: make(chan struct{}), http: http.Server{
		Handler: http.MaxBytesHandler(o.mux(), 0), MaxHeaderBytes: maxHeader - 4<<10,
		ReadTimeout: readTime, ReadHeaderTimeout: readTime, WriteTimeout: writeTime, IdleTimeout: idleTime,
		ErrorLog: log.New(io.Discard, "", 0), // peers choose how much there would be
	}}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(&limited{Listener: ln})
	}()
	return s
}

// Addr returns the address.
func (s *Scraped) Addr() net.Addr { return s.ln.Addr() }

// HandOver closes the server; another process has its socket, which stays where it is.
func (s *Scraped) HandOver() error {
	if p, ok := s.ln.(*private); ok {
		p.path = ""
	}
	return s.Close()
}

// Close closes the server and its connections.
func (s *Scraped) Close() error {
	err := s.http.Close()
	<-s.done
	return err
}

func (o *Observer) mux() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(o.registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, Timeout: writeTime}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if why := o.Ready(); why != nil {
			http.Error(w, why.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	mux.HandleFunc("GET /connections", o.connections)
	return mux
}

// A Connection is one of the list at /connections.
type Connection struct {
	Transport string  `json:"transport"`
	Peer      string  `json:"peer"`
	Origin    string  `json:"origin"`
	Age       float64 `json:"age_seconds"`
	Idle      float64 `json:"idle_seconds"`
	Calls     int     `json:"calls_in_progress"`
	Served    uint64  `json:"calls_total"`
	Credits   int     `json:"credits"`
	In        uint64  `json:"received_bytes"`
	Out       uint64  `json:"transmitted_bytes"`
}

// connections writes the list of connections as JSON, those first that have moved most.
func (o *Observer) connections(w http.ResponseWriter, _ *http.Request) {
	o.mu.Lock()
	server := o.server
	o.mu.Unlock()
	list := []Connection{}
	if server != nil {
		for _, c := range server.Connections() {
			list = append(list, connectionOf(&c))
		}
	}
	slices.SortFunc(list, func(a, b Connection) int {
		return cmp.Or(cmp.Compare(b.In+b.Out, a.In+a.Out), cmp.Compare(a.Peer, b.Peer))
	})
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(list) // the scraper has gone
}

func connectionOf(c *oncrpc.ConnectionStats) Connection {
	return Connection{
		Transport: c.Network, Peer: c.Remote.String(), Origin: c.Origin,
		Age: time.Since(c.Since).Seconds(), Idle: c.Idle.Seconds(),
		Calls: c.Calls, Served: c.Served, Credits: c.Credits, In: c.OctetsIn, Out: c.OctetsOut,
	}
}
