package perf

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/origin"
)

// servePeer runs a peer for the test and returns its address and what ends it.
func servePeer(t *testing.T, wrap func(net.Conn) net.Conn) (addr string, stop func() error) {
	t.Helper()
	return servePeerWithin(t, wrap, limits{})
}

// servePeerWithin is servePeer with other limits of time than the usual.
func servePeerWithin(t *testing.T, wrap func(net.Conn) net.Conn, within limits) (addr string, stop func() error) {
	t.Helper()
	return serve(t, PeerConfig{Wrap: wrap, limits: within})
}

// serve runs a peer for the test as cfg says, and returns its address and what ends it.
func serve(t *testing.T, cfg PeerConfig) (addr string, stop func() error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Listener, cfg.Logger = ln.(*net.TCPListener), slog.New(slog.DiscardHandler)
	// As others of this machine's addresses stand for other machines.
	cfg.Admit = func(nc net.Conn) (*origin.Origin, error) { return origin.Of(nc.RemoteAddr()), nil }
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, cfg) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { stop() })
	return ln.Addr().String(), stop
}

func quick(addr string, ops ...Op) Config {
	return Config{
		Address: addr, Ops: ops, Sizes: []int{1, 100, 70000}, CRC: []bool{true, false},
		Depth: 16, Rounds: 2, Duration: 50 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler),
	}
}

func TestEveryOperationIsMeasuredAndVerified(t *testing.T) {
	addr, stop := servePeer(t, nil)
	cfg := quick(addr, Ops...)
	last, steps := 0, 0
	cfg.Progress = func(step, of int) { last, steps = step, of }
	rep, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if want := (3*3 + 3) * 2; len(rep.Results) != want {
		t.Errorf("%d results, want %d", len(rep.Results), want)
	}
	for _, r := range rep.Results {
		if r.BytesPerSecond <= 0 || r.Latency.P50 <= 0 || r.Latency.P99 < r.Latency.P50 || r.Latency.Max < r.Latency.P999 || r.Ratio <= 0 || r.TCPLatency.P50 <= 0 || len(r.Latency.Histogram) == 0 || len(r.TCPLatency.Histogram) == 0 || r.Timed == 0 || r.Verified == 0 {
			t.Errorf("result %+v", r)
		}
	}
	if last == 0 || last > steps {
		t.Errorf("progress ended at %d of %d", last, steps)
	}
	if err := stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("the peer ended with %v, want that of its context", err)
	}
}

func TestSeveralConnectionsAreMeasuredTogether(t *testing.T) {
	addr, _ := servePeer(t, nil)
	one := quick(addr, Ops...)
	one.CRC, one.Sizes = []bool{true}, []int{100}
	three := one
	three.Connections = 3
	before, err := Run(t.Context(), one)
	if err != nil {
		t.Fatal(err)
	}
	rep, err := Run(t.Context(), three)
	if err != nil {
		t.Fatal(err)
	}
	if before.Settings.Connections != 1 || rep.Settings.Connections != 3 {
		t.Errorf("the reports have %d and %d connections, want 1 and 3", before.Settings.Connections, rep.Settings.Connections)
	}
	for i, r := range rep.Results {
		trips := total(r.Latency.Histogram)
		if r.Verified != 3*before.Results[i].Verified || r.Timed%3 != 0 || trips == 0 || trips%3 != 0 {
			t.Errorf("%s: %d verified, %d timed, %d in the histogram: want %d verified, and of all multiples of 3", r.Op, r.Verified, r.Timed, trips, 3*before.Results[i].Verified)
		}
	}
}

// Largest sizes, too, fit what a peer gives to so many connections.
func TestRoomOfAllConnectionsIsBounded(t *testing.T) {
	for _, n := range []int{1, 2, 3, 64, MaxConnections} {
		for _, size := range []int{1, wordSize, 64, 1 << 20, SizeLimit(n)} {
			if room := size * slotsFor(size, n); size <= SizeLimit(n) && room > maxRoom/n {
				t.Errorf("%d connections of %d bytes a message take %d bytes each", n, size, room)
			}
		}
		if depth := DepthLimit(n); depth < 256 {
			t.Errorf("%d connections have a depth of at most %d, less than the default", n, depth)
		}
	}
}

func TestTheDeepestQueuesAreServed(t *testing.T) {
	addr, _ := servePeer(t, nil)
	cfg := quick(addr, Send)
	cfg.CRC, cfg.Sizes, cfg.Depth = []bool{false}, []int{1}, DepthLimit(1)
	if _, err := Run(t.Context(), cfg); err != nil {
		t.Error(err)
	}
}

// A corrupter flips a bit in what is written, as long as it is on: so far from
// the beginning, in writes so long, that it hits payload.
type corrupter struct {
	net.Conn
	on *atomic.Bool
}

func (c corrupter) Write(p []byte) (int, error) {
	if c.on.Load() && len(p) > 1000 {
		p = append([]byte(nil), p...)
		p[500] ^= 0x40
	}
	return c.Conn.Write(p)
}

func TestDamagedDataFailsTheMeasurement(t *testing.T) {
	for _, tt := range []struct {
		op       Op
		atDriver bool // where the damage is done
		want     string
	}{
		{Write, true, "at the other end: data mismatch"},
		{Send, true, "at the other end: data mismatch"},
		{Read, false, "data mismatch"},
	} {
		t.Run(string(tt.op), func(t *testing.T) {
			on := new(atomic.Bool)
			on.Store(true)
			damage := func(nc net.Conn) net.Conn { return corrupter{nc, on} }
			var addr string
			cfg := quick("", tt.op)
			if tt.atDriver {
				addr, _ = servePeer(t, nil)
				cfg.Wrap = damage
			} else {
				addr, _ = servePeer(t, damage)
			}
			cfg.Address, cfg.CRC, cfg.Sizes = addr, []bool{false}, []int{4096}
			_, err := Run(t.Context(), cfg)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Run returned %v, want an error with %q", err, tt.want)
			}
			cfg.Connections = 2
			if _, err := Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("with two connections Run returned %v, want an error with %q", err, tt.want)
			}
			on.Store(false)
			if _, err := Run(t.Context(), cfg); err != nil {
				t.Errorf("the same without damage: %v", err)
			}
		})
	}
}

// What a driver has to ask for its next run is no limit of the run.
func TestARunMayTakeUntilItsOwnLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		within := limits{open: openLimit, idle: idleLimit, run: runLimit}
		nc, far := net.Pipe()
		defer far.Close()
		s := newSession(&PeerConfig{limits: within}, nil, nc)
		s.hello = hello{Room: 1, Depth: 1} // no connections: the run is what the driver makes of it
		ended := make(chan error, 1)
		go func() {
			defer s.close()
			ended <- s.serve(t.Context())
		}()

		d := driver{ctl: newControl(far)}
		time.Sleep(within.idle - time.Second)
		for _, wait := range []time.Duration{within.idle + time.Second, within.run - time.Second} {
			if _, err := d.ask(request{Do: doRun, Run: &run{Kind: stream, Op: Send, Size: 1, N: 1, Slots: 1, Depth: 1, Batch: 1, Signal: 1}}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(wait)
			if _, err := d.ask(request{Do: doCheck}); err != nil {
				t.Fatalf("after a run of %v: %v", wait, err)
			}
		}
		far.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestMeasurementEndsWithItsContext(t *testing.T) {
	addr, _ := servePeer(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cfg := quick(addr, Write, Read)
	cfg.Duration = time.Hour
	cfg.Progress = func(step, steps int) {
		if step == 3 {
			cancel()
		}
	}
	if _, err := Run(ctx, cfg); !errors.Is(err, context.Canceled) {
		t.Errorf("Run returned %v, want %v", err, context.Canceled)
	}
}

func TestMeasurementFailsWhenThePeerGoesAway(t *testing.T) {
	addr, stop := servePeer(t, nil)
	cfg := quick(addr, Send, FetchAdd)
	cfg.Progress = func(step, steps int) {
		if step == 3 {
			go stop()
		}
	}
	cfg.Duration = time.Hour
	if _, err := Run(t.Context(), cfg); err == nil {
		t.Error("Run returned no error")
	}
}

func TestNobodyListeningIsSaidWithTheRemedy(t *testing.T) {
	addr, stop := servePeer(t, nil)
	stop()
	if _, err := Run(t.Context(), quick(addr, Send)); err == nil || !strings.Contains(err.Error(), "weft perf --listen "+addr) {
		t.Errorf("Run returned %v", err)
	}
}
