// Leaders, which wait in the place of Receive.

package mpa

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/mpa/internal/turns"
)

// A counter is a collector that counts, and wakes one goroutine that waits for more.
type counter struct {
	collector
	mu   sync.Mutex
	n    int
	more chan struct{} // of capacity 1
}

func (s *counter) ULPDU(u []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	select {
	case s.more <- struct{}{}:
	default: // that it has more is known
	}
	return s.collector.ULPDU(u)
}

// count returns how many ULPDUs it has.
func (s *counter) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// A led is a stream on whose receiving end others may wait in Receive's place.
type led struct {
	t       *testing.T
	out, in *Conn
	sink    counter
	sent    int
	done    chan error // what Receive returned
}

func newLed(t *testing.T, p Params) *led { return newLedIn(t, p, nil) }

// newLedIn is newLed in a program with one processor or with more.
func newLedIn(t *testing.T, p Params, yield func()) *led {
	a, b := tcpPair(t)
	p.Initiator = true
	l := &led{t: t, out: NewConn(a, p), in: NewConn(b, p), done: make(chan error, 1)}
	share(t, l.in, yield)
	l.sink.more = make(chan struct{}, 1)
	go func() { l.done <- l.in.Receive(&l.sink) }()
	return l
}

// lead has c, whose Receive has not begun, be in a program of several processors.
func lead(t *testing.T, c *Conn) { share(t, c, nil) }

func share(t *testing.T, c *Conn, yield func()) {
	nc := c.nc.(*net.TCPConn)
	rc, err := nc.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	c.connect(newTCP(nc, rc, &c.stats, yield))
	c.reader.transport, c.reader.direct = c.transport, c.direct
}

// send sends one ULPDU of n octets.
func (l *led) send(n int) {
	l.t.Helper()
	l.sent++
	l.out.Append(pattern(n, l.sent), nil)
	if _, err := flushAll(l.out); err != nil {
		l.t.Fatal(err)
	}
}

// arrived waits until all that was sent has been handed up.
func (l *led) arrived() {
	l.t.Helper()
	for l.sink.count() < l.sent {
		nettest.Await(l.t, l.sink.more)
	}
}

// free sends and polls, until Receive leaves the wait to others.
func (l *led) free() {
	l.t.Helper()
	nettest.Until(l.t, func() bool {
		if l.in.turns.State() == turns.Free {
			return true
		}
		l.in.Poll()
		l.send(20)
		l.arrived()
		for range 100 {
			runtime.Gosched() // Receive parks
		}
		return false
	})
}

// ended checks what Receive returned.
func (l *led) ended(want error) {
	l.t.Helper()
	if err := nettest.Await(l.t, l.done); !errors.Is(err, want) {
		l.t.Errorf("Receive: %v, expected %v", err, want)
	}
}

func TestReceiveLeavesTheWaitToThoseWhoComeEachTime(t *testing.T) {
	l := newLed(t, Params{CRC: true})
	waited := 0
	for range 100 {
		l.free()
		l.send(200)
		if l.in.Wait(context.Background()) {
			l.in.Poll()
			waited++
		} // else the watchdog has come in between
		l.arrived()
	}
	if waited == 0 {
		t.Error("nobody ever waited in Receive's place")
	}
	l.free()
	_ = l.out.CloseWrite()
	l.in.Wait(context.Background())
	l.in.Poll()
	l.ended(io.EOF)
}

func TestReceiveKeepsTheWaitInAProgramOfOneProcessor(t *testing.T) {
	l := newLedIn(t, Params{}, func() {})
	for range 4 * 16 {
		if l.in.Wait(context.Background()) {
			t.Error("it was left")
		}
		l.send(20)
		l.arrived()
	}
	_ = l.out.CloseWrite()
	l.ended(io.EOF)
}

// What is long, or begins with less than a ULPDU, is for Receive.
func TestReceiveTakesBackTheWaitForMuch(t *testing.T) {
	for _, sizes := range [][]int{{60000}, {2000, 2000, 2000, 2000, 2000, 2000, 2000, 2000, 2000}} {
		l := newLed(t, Params{CRC: true})
		l.free()
		for _, n := range sizes {
			l.sent++
			l.out.Append(pattern(n, n), nil)
		}
		_, _ = flushAll(l.out)
		if l.in.Wait(context.Background()) {
			l.in.Poll() // a part of it
		}
		l.arrived()
		_ = l.out.CloseWrite()
		l.ended(io.EOF)
	}
}

func TestReceiveTakesBackTheWaitWhenNobodyComes(t *testing.T) {
	l := newLed(t, Params{})
	l.free()
	l.send(20)
	l.arrived()
	_ = l.out.CloseWrite()
	l.ended(io.EOF)
}

// A wait ends when the connection ends, which Receive then returns. It also ends when it
// is interrupted, and then the stream goes on.
func TestAWaitInReceivesPlaceEnds(t *testing.T) {
	background := context.Background()
	for _, v := range []struct {
		name string
		end  func(l *led, cancel func())
		want error // nil: the stream goes on
	}{
		{"closing", func(l *led, _ func()) { _ = l.in.Close() }, net.ErrClosed},
		{"a reset", func(l *led, _ func()) { _ = l.in.Reset() }, net.ErrClosed},
		{"a deadline", func(l *led, _ func()) { _ = l.in.SetReadDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
		{"a deadline to come", func(l *led, _ func()) { _ = l.in.SetReadDeadline(time.Now().Add(time.Millisecond)) }, os.ErrDeadlineExceeded},
		{"closing what is below", func(l *led, _ func()) { _ = l.in.NetConn().Close() }, net.ErrClosed},
		{"the peer", func(l *led, _ func()) { _ = l.out.CloseWrite() }, io.EOF},
		{"an interruption", func(l *led, _ func()) { l.in.Interrupt() }, nil},
		{"a context", func(_ *led, cancel func()) { cancel() }, nil},
	} {
		for _, when := range []string{"before", "meanwhile"} {
			l := newLed(t, Params{})
			ctx, cancel := context.WithCancel(background)
			l.free()
			var waits sync.WaitGroup
			if when == "before" {
				v.end(l, cancel)
			} else {
				waits.Go(func() {
					for range 1000 {
						runtime.Gosched()
					}
					v.end(l, cancel)
				})
			}
			l.in.Wait(ctx)
			nettest.AwaitGroup(t, &waits)
			l.in.Poll()
			if v.want == nil {
				l.send(20)
				l.arrived()
				_ = l.out.CloseWrite()
				l.ended(io.EOF)
			} else {
				l.ended(v.want)
			}
			cancel()
		}
	}
}

// However many goroutines wait and poll, each ULPDU is handed up once and in order, and
// the stream ends.
func TestThoseWhoWaitAndReceiveShareTheStream(t *testing.T) {
	for _, p := range []Params{{CRC: true}, {}} {
		l := newLed(t, p)
		come := make(chan struct{}, 3)
		var others sync.WaitGroup
		waits := atomic.Int64{}
		for range cap(come) {
			others.Go(func() {
				for range come {
					if l.in.Wait(context.Background()) {
						waits.Add(1)
						l.in.Poll()
					}
				}
			})
		}
		rng := rand.New(rand.NewPCG(3, 4))
		var want [][]byte
		send := func(n int) {
			for range cap(come) {
				select {
				case come <- struct{}{}:
				default:
				}
			}
			l.send(n)
			want = append(want, pattern(n, l.sent))
		}
		for range 60 {
			for range 32 {
				send(18 + rng.IntN(200))
				l.arrived()
			}
			for range rng.IntN(20) {
				send(18 + rng.IntN(60000))
			}
		}
		_ = l.out.CloseWrite()
		l.ended(io.EOF)
		close(come)
		nettest.AwaitGroup(t, &others)
		if !bytes.Equal(bytes.Join(l.sink.got, nil), bytes.Join(want, nil)) {
			t.Errorf("%s: %d ULPDUs, expected %d as they were sent", termsName(p), len(l.sink.got), len(want))
		}
		if waits.Load() == 0 {
			t.Errorf("%s: nobody ever waited in Receive's place", termsName(p))
		}
	}
}
