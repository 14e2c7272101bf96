package observe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
	"github.com/weft-rdma/weft/verbs"
)

// aServer serves one connection.
type aServer struct{}

func (aServer) ServerStats() map[string]oncrpc.ServerStats {
	return map[string]oncrpc.ServerStats{"rdma": {Connections: 1, Credits: 64, Full: 2, Evicted: 3, EvictedEarly: 4}, "tcp": {}}
}

func (aServer) Connections() []oncrpc.ConnectionStats {
	return []oncrpc.ConnectionStats{{Network: "rdma", Remote: peer, Origin: "192.0.2.7", Since: time.Now(), Served: 5, OctetsIn: 7}}
}

var peer = &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 700}

// request is a call of NFS version 3.
func request(proc nfs.Proc) *oncrpc.Request {
	return &oncrpc.Request{
		Call: oncrpc.Call{XID: 9, Prog: nfs.Program, Vers: nfs.V3, Proc: uint32(proc)}, Message: make([]byte, 100),
		Network: "rdma", Remote: peer, Origin: origin.Of(peer),
	}
}

// answering replies with a status of NFS.
func answering(s nfs.Stat) oncrpc.Handler {
	return oncrpc.HandlerFunc(func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
		e := r.Accept(8)
		e.Uint32(uint32(s))
		return e.Finish()
	})
}

// full is an Observer that has something in every metric.
func full(t *testing.T) *Observer {
	t.Helper()
	rnic, err := verbs.Open(verbs.Config{Limits: verbs.Limits{PDs: 1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rnic.Close() })
	o := New(Config{Version: "1"})
	o.AddRNIC(rnic)
	o.SetServer(aServer{})
	o.SetExports([]string{"/srv"}, func(*oncrpc.Request) string { return "/srv" })
	o.Serving()
	for _, s := range []nfs.Stat{nfs.OK, nfs.ErrNoEnt} {
		if _, err := o.Handler(answering(s)).ServeRPC(t.Context(), request(nfs.ProcLookup)); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// serve serves an Observer over HTTP.
func serve(t *testing.T, o *Observer, addr string) *Scraped {
	t.Helper()
	ln, err := Listen(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	s := o.Serve(ln)
	t.Cleanup(func() { s.Close() })
	return s
}

// get returns the status and the body of a page.
func get(t *testing.T, s *Scraped, path string) (int, string) {
	t.Helper()
	tr := &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial(s.Addr().Network(), s.Addr().String())
	}}
	defer tr.CloseIdleConnections()
	r, err := (&http.Client{Transport: tr}).Get("http://weft" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

// scrape parses what Prometheus would.
func scrape(t *testing.T, s *Scraped) map[string]*dto.MetricFamily {
	t.Helper()
	status, text := get(t, s, "/metrics")
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(strings.NewReader(text))
	if status != http.StatusOK || err != nil {
		t.Fatalf("status %d, %v", status, err)
	}
	return families
}

func TestAScrapeIsWhatPrometheusExpects(t *testing.T) {
	nettest.CheckLeaks(t)
	s := serve(t, full(t), "127.0.0.1:0")
	families := scrape(t, s)
	if n := len(families["weft_rpc_duration_seconds"].GetMetric()); n != 1 {
		t.Errorf("latency of %d procedures, expected 1", n)
	}
	if e := families["weft_rpc_errors_total"].GetMetric(); len(e) != 1 || e[0].GetCounter().GetValue() != 1 || !strings.Contains(e[0].String(), "NFS3ERR_NOENT") {
		t.Errorf("the errors are %v", e)
	}
	_, text := get(t, s, "/metrics")
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// A gatherer of the registry lints what is registered, too.
func TestTheRegistryIsClean(t *testing.T) {
	problems, err := testutil.GatherAndLint(full(t).registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// Peers choose programs, versions and procedures: they do not make metrics.
func TestLabelsAreBounded(t *testing.T) {
	o := New(Config{})
	h := o.Handler(oncrpc.Mux{})
	for _, prog := range []uint32{nfs.Program, 7, 1 << 30, nfs.MountProgram} {
		for vers := range uint32(50) {
			for proc := range uint32(50) {
				r := request(0)
				r.Prog, r.Vers, r.Proc = prog, vers, proc*1000
				h.ServeRPC(t.Context(), r)
			}
		}
	}
	if n := testutil.CollectAndCount(o.calls.duration); n > 20 {
		t.Errorf("there are %d histograms", n)
	}
	if n := len(*o.calls.index.Load()); n > 20 {
		t.Errorf("there are %d keys", n)
	}
}

func TestErrorsHaveTheNamesOfTheSpecifications(t *testing.T) {
	for _, tt := range []struct {
		vers   uint32
		status nfs.Stat
		err    error
		want   string
	}{
		{3, nfs.OK, nil, "OK"},
		{3, nfs.ErrStale, nil, "NFS3ERR_STALE"},
		{3, 4711, nil, other},
		{3, 1 << 30, nil, other},
		{4, 10013, nil, "NFS4ERR_10013"},
		{3, 0, &oncrpc.AcceptError{Stat: oncrpc.ProcUnavail}, "PROC_UNAVAIL"},
		{3, 0, &oncrpc.RejectError{Stat: oncrpc.AuthError, Auth: oncrpc.AuthTooWeak}, "AUTH_TOOWEAK"},
		{3, 0, &oncrpc.RejectError{Stat: oncrpc.AuthError, Auth: 4711}, other},
		{3, 0, errors.New("anything"), "SYSTEM_ERR"},
		{3, 0, oncrpc.ErrNoReply, "NO_REPLY"},
	} {
		r := request(nfs.ProcGetattr)
		r.Vers = tt.vers
		reply, err := answering(tt.status).ServeRPC(t.Context(), r)
		if tt.err != nil {
			reply, err = nil, tt.err
		}
		if got := statusOf(&r.Call, reply, err); got != tt.want {
			t.Errorf("version %d, %d, %v: %s, want %s", tt.vers, tt.status, tt.err, got, tt.want)
		}
	}
}

func TestReadinessFollowsTheCommand(t *testing.T) {
	nettest.CheckLeaks(t)
	o := New(Config{})
	s := serve(t, o, "127.0.0.1:0")
	want := func(path string, status int, text string) {
		t.Helper()
		if got, body := get(t, s, path); got != status || strings.TrimSpace(body) != text {
			t.Errorf("%s: %d %q, want %d %q", path, got, body, status, text)
		}
	}
	want("/readyz", 503, "starting")
	want("/healthz", 200, "ok")
	o.Serving()
	want("/readyz", 200, "ready")
	o.Draining()
	want("/readyz", 503, "draining")
	want("/healthz", 200, "ok")
}

func TestConnectionsAreListed(t *testing.T) {
	nettest.CheckLeaks(t)
	s := serve(t, full(t), "127.0.0.1:0")
	_, text := get(t, s, "/connections")
	var list []Connection
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 || list[0].Peer != "192.0.2.7:700" || list[0].Served != 5 || list[0].In != 7 {
		t.Errorf("listed %+v", list)
	}
}

func TestASocketIsForItsUserAlone(t *testing.T) {
	nettest.CheckLeaks(t)
	path := filepath.Join(t.TempDir(), "weft.sock")
	s := serve(t, full(t), "unix:"+path)
	i, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if os.PathSeparator == '/' && i.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v", i.Mode())
	}
	scrape(t, s)
	if _, err := Listen(t.Context(), "unix:"+path); err == nil {
		t.Error("two listen on one socket")
	}
	s.Close()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after the end: %v", err)
	}
}

// A socket that a killed process has left does not keep the next one from starting, and
// a file of another kind is left alone.
func TestAnAbandonedSocketIsReplaced(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	ln.Close()
	again, err := Listen(t.Context(), "unix:"+path)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(t.Context(), "unix:"+file); err == nil {
		t.Error("a file was replaced")
	}
	if b, _ := os.ReadFile(file); string(b) != "mine" {
		t.Errorf("the file holds %q", b)
	}
}

func TestWithoutAHostOnlyThisMachineIsServed(t *testing.T) {
	ln, err := Listen(t.Context(), ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if host, _, _ := net.SplitHostPort(ln.Addr().String()); host != "127.0.0.1" {
		t.Errorf("it listens on %s", ln.Addr())
	}
	for _, bad := range []string{"", "9090", "host", "host:"} {
		if ln, err := Listen(t.Context(), bad); err == nil {
			ln.Close()
			t.Errorf("%q is taken for an address", bad)
		}
	}
}

// Scrapers that connect and say nothing, or too much, get only what is theirs: once they
// are gone the next is served.
func TestHostileScrapersAreBounded(t *testing.T) {
	nettest.CheckLeaks(t)
	s := serve(t, full(t), "127.0.0.1:0")
	var silent []net.Conn
	for range 2 * maxConnections {
		c, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		silent = append(silent, c)
	}
	for _, c := range silent {
		c.Close()
	}
	scrape(t, s)

	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "GET /metrics HTTP/1.1\r\nHost: x\r\nX: ")
	go io.Copy(c, io.LimitReader(zeros{}, 64<<20)) // fails when the server closes
	answer, _ := io.ReadAll(io.LimitReader(c, 100))
	if len(answer) > 0 && !bytes.Contains(answer, []byte(" 431 ")) && !bytes.Contains(answer, []byte(" 400 ")) {
		t.Errorf("a huge header is answered by %q", answer)
	}
	scrape(t, s)
	if s.http.ReadTimeout == 0 || s.http.WriteTimeout == 0 || s.http.IdleTimeout == 0 || s.http.ReadHeaderTimeout == 0 {
		t.Error("a slow scraper has no limit")
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = '0'
	}
	return len(b), nil
}

// A connection counts until it is closed, and once.
func TestConnectionsOfScrapersAreLimited(t *testing.T) {
	inner := nettest.Listen(t, "tcp")
	defer inner.Close()
	l := &limited{Listener: inner}
	for range 2 {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	var accepted [2]net.Conn
	for i := range accepted {
		var err error
		if accepted[i], err = l.Accept(); err != nil {
			t.Fatal(err)
		}
	}
	if len(l.open) != 2 {
		t.Errorf("%d connections count, expected 2", len(l.open))
	}
	accepted[0].Close()
	accepted[0].Close()
	if len(l.open) != 1 {
		t.Errorf("%d connections count after one was closed, expected 1", len(l.open))
	}
	accepted[1].Close()
}

func TestAScrapeUnderLoadIsConsistent(t *testing.T) {
	nettest.CheckLeaks(t)
	o := full(t)
	s := serve(t, o, "127.0.0.1:0")
	var load sync.WaitGroup
	defer load.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 4 {
		load.Go(func() {
			h := o.Handler(answering(nfs.ErrNoEnt))
			for ctx.Err() == nil {
				h.ServeRPC(ctx, request(nfs.ProcRead))
			}
		})
	}
	var last uint64
	for range 10 {
		var n uint64
		for _, m := range scrape(t, s)["weft_rpc_duration_seconds"].GetMetric() {
			n += m.GetHistogram().GetSampleCount()
		}
		if n < last {
			t.Fatalf("%d calls after %d", n, last)
		}
		last = n
	}
}

func TestTheAccessLogSaysWhoAndWhat(t *testing.T) {
	var out bytes.Buffer
	o := New(Config{Access: slog.New(slog.NewJSONHandler(&out, nil))})
	r := request(nfs.ProcLookup)
	sys := oncrpc.AuthSys{UID: 1000, GID: 100}
	body, err := sys.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Cred = oncrpc.OpaqueAuth{Flavor: oncrpc.FlavorSys, Body: body}
	e := oncrpc.NewEncoder(nil)
	e.Opaque([]byte{0xab, 0xcd}, 64)
	e.String("pass\nwd", 255)
	r.Args, _ = e.Finish()
	if _, err := o.Handler(answering(nfs.ErrAcces)).ServeRPC(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || bytes.Count(out.Bytes(), []byte("\n")) != 1 {
		t.Fatalf("%v in %q", err, out.String())
	}
	for name, want := range map[string]any{
		"peer": "192.0.2.7:700", "uid": 1000.0, "procedure": "LOOKUP", "handle": "abcd", "name": "pass\nwd",
		"status": "NFS3ERR_ACCES", "transport": "rdma", "xid": 9.0, "received": 100.0,
	} {
		if line[name] != want {
			t.Errorf("%s is %v, want %v", name, line[name], want)
		}
	}
	if line["took"] == nil {
		t.Error("the time is missing")
	}
}

// An observed call costs no memory.
func TestObservingACallAllocatesNothing(t *testing.T) {
	o := New(Config{})
	r := request(nfs.ProcNull)
	reply := make([]byte, 24)
	reply[7] = 1 // REPLY
	h := o.Handler(oncrpc.HandlerFunc(func(context.Context, *oncrpc.Request) ([]byte, error) { return reply, nil }))
	h.ServeRPC(t.Context(), r)
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() { h.ServeRPC(ctx, r) }); n > 1 {
		t.Errorf("a call allocates %v times", n)
	}
}

var _ prometheus.Collector = state{}
