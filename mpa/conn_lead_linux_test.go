package mpa

// Those who wait in the place of Receive.

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
)

// A teller is a collector that tells others how many it has.
type teller struct {
	collector
	mu   sync.Mutex
	more sync.Cond
	n    int

	meanwhile func() // something else, before the reader reads again
}

func (s *teller) ULPDU(u []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	s.more.Broadcast()
	if s.meanwhile != nil {
		s.meanwhile()
	}
	return s.collector.ULPDU(u)
}

func (s *teller) has() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// A led is a stream whose receiving end may be waited for in Receive's place.
type led struct {
	t       *testing.T
	out, in *Conn
	sink    teller
	sent    int
	done    chan error // what Receive returned
}

func newLed(t *testing.T, p Params) *led { return newLedIn(t, p, false) }

// newLedIn is newLed in a program with one processor or with more.
func newLedIn(t *testing.T, p Params, bound bool) *led {
	a, b := tcpPair(t)
	p.Initiator = true
	l := &led{t: t, out: NewConn(a, p), in: NewConn(b, p), done: make(chan error, 1)}
	l.socket().bound = bound
	l.sink.more.L = &l.sink.mu
	go func() { l.done <- l.in.Receive(&l.sink) }()
	return l
}

func (l *led) socket() *socket { return l.in.transport.(*socket) }

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
	l.sink.mu.Lock()
	defer l.sink.mu.Unlock()
	for l.sink.n < l.sent {
		l.sink.more.Wait()
	}
}

// lead sends and asks for the wait each time, until Receive leaves it.
func (l *led) lead() {
	for !l.in.Lead() {
		l.send(20)
		l.arrived()
		for range 100 {
			runtime.Gosched() // Receive parks
		}
	}
}

// ended checks what Receive returned.
func (l *led) ended(want error) {
	l.t.Helper()
	if err := <-l.done; !errors.Is(err, want) {
		l.t.Errorf("Receive: %v, expected %v", err, want)
	}
	watch.mu.Lock()
	defer watch.mu.Unlock()
	if _, ok := watch.sockets[l.socket()]; ok {
		l.t.Error("the watchdog keeps a socket whose Receive has ended")
	}
}

func TestReceiveLeavesTheWaitToThoseWhoComeEachTime(t *testing.T) {
	l := newLed(t, Params{CRC: true})
	l.lead()
	if l.sent < ledLong {
		t.Errorf("after %d arrivals, expected no less than %d", l.sent, ledLong)
	}
	for range 100 {
		l.send(200)
		l.in.Await(context.Background())
		l.in.Unlead()
		if !l.in.Poll() || l.sink.has() != l.sent {
			t.Fatalf("%d of %d have been handed up by who waited", l.sink.has(), l.sent)
		}
		if !l.in.Lead() {
			l.lead() // the watchdog has come in between
		}
	}
	_ = l.out.CloseWrite()
	l.in.Await(context.Background())
	l.in.Unlead()
	l.in.Poll()
	l.ended(io.EOF)
	if l.in.Lead() {
		t.Error("there is something to be waited for after the end")
	}
}

func TestReceiveKeepsTheWaitInAProgramOfOneProcessor(t *testing.T) {
	l := newLedIn(t, Params{}, true)
	for range 4 * ledLong {
		if l.in.CanLead() || l.in.Lead() {
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
		l.lead()
		for _, n := range sizes {
			l.sent++
			l.out.Append(pattern(n, n), nil)
		}
		_, _ = flushAll(l.out)
		l.in.Await(context.Background())
		l.in.Unlead()
		l.in.Poll() // a part of it
		if l.in.Lead() {
			t.Errorf("%d octets: the wait is still to be taken", len(sizes)*sizes[0])
		}
		l.arrived()
		_ = l.out.CloseWrite()
		l.ended(io.EOF)
	}
}

func TestReceiveTakesBackTheWaitWhenNobodyComes(t *testing.T) {
	for _, waited := range []bool{false, true} {
		l := newLed(t, Params{})
		l.lead()
		if waited {
			l.send(20)
			l.in.Await(context.Background())
		}
		l.in.Unlead()
		l.send(20)
		l.arrived()
		_ = l.out.CloseWrite()
		l.ended(io.EOF)
	}
}

// A wait ends when the connection does, and Receive is told of it; so it is when it is
// called off, and then the stream goes on.
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
		{"a call", func(l *led, _ func()) { l.in.Rouse() }, nil},
		{"a context", func(_ *led, cancel func()) { cancel() }, nil},
	} {
		for _, when := range []string{"before", "meanwhile"} {
			l := newLed(t, Params{})
			ctx, cancel := context.WithCancel(background)
			l.lead()
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
			l.in.Await(ctx)
			waits.Wait()
			l.in.Unlead()
			if seat := l.socket().leader.seat.Load(); v.name != "the peer" && seat != readers {
				t.Errorf("%s, %s: the seat is %d, expected the reader's", v.name, when, seat)
			}
			l.in.Poll()
			if v.want == nil {
				l.send(20)
				if l.in.Lead() {
					l.in.Await(background)
					l.in.Unlead()
					l.in.Poll()
				}
				l.arrived()
				_ = l.out.CloseWrite()
				l.ended(io.EOF)
			} else if l.ended(v.want); l.in.Lead() {
				t.Errorf("%s, %s: there is something to be waited for after the end", v.name, when)
			}
			cancel()
		}
	}
}

// Who waits for long need not be looked after.
func TestAReaderHasItsSeatWhenNothingComes(t *testing.T) {
	l := newLed(t, Params{})
	l.lead()
	began := time.Now()
	l.in.Await(context.Background())
	if d := time.Since(began); d < ledIdle*nap/2 {
		t.Errorf("after %v, expected some %v", d, ledIdle*nap)
	}
	l.in.Unlead()
	if l.in.Lead() {
		t.Error("there is still a wait to be taken")
	}
	_ = l.out.CloseWrite()
	l.ended(io.EOF)
}

// However many wait and poll, each ULPDU is handed up once and in order, and the stream
// ends.
func TestThoseWhoWaitAndReceiveShareTheStream(t *testing.T) {
	for _, p := range []Params{{CRC: true}, {}, {CRC: true, Spin: 50 * time.Microsecond}} {
		l := newLed(t, p)
		come := make(chan struct{}, 3)
		var others sync.WaitGroup
		waits := atomic.Int64{}
		for range cap(come) {
			others.Go(func() {
				for range come {
					if l.in.Lead() {
						waits.Add(1)
						l.in.Await(context.Background())
						l.in.Unlead()
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
			for range 2 * ledLong {
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
		others.Wait()
		if !bytes.Equal(bytes.Join(l.sink.got, nil), bytes.Join(want, nil)) {
			t.Errorf("%s: %d ULPDUs, expected %d as they were sent", termsName(p), len(l.sink.got), len(want))
		}
		if p.Spin == 0 && waits.Load() == 0 {
			t.Errorf("%s: nobody ever waited in Receive's place", termsName(p))
		}
	}
}

// Who has asked for the seat in vain sleeps until there are octets: the reader may not
// leave it to him.
func TestAReaderKeepsItsSeatForThoseWhoHaveBeenThere(t *testing.T) {
	l := newLed(t, Params{})
	l.sink.mu.Lock()
	l.sink.meanwhile = func() {
		if l.in.Lead() {
			t.Error("the reader's seat was taken")
		}
	}
	l.sink.mu.Unlock()
	for i := range 4 * ledLong {
		l.send(20)
		l.arrived()
		for range 100 {
			runtime.Gosched() // Receive parks
		}
		if l.socket().leader.seat.Load() == free {
			t.Fatalf("after %d arrivals the seat is free, and nobody comes", i+1)
		}
	}
	_ = l.out.CloseWrite()
	l.ended(io.EOF)
}
