package mpa

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/internal/polled"
	"github.com/weft-rdma/weft/mpa/internal/socket"
)

// However many goroutines poll, each ULPDU is handed up once and in order, and the stream
// ends.
func TestThoseWhoPollAndReceiveShareTheStream(t *testing.T) {
	for i, p := range []Params{{CRC: true}, {}, {CRC: true, SendMarkers: true}, {CRC: true}, {}, {CRC: true, SendMarkers: true}} {
		a, tcp := tcpPair(t)
		b := net.Conn(tcp)
		if i >= 3 {
			b = quiet(t, tcp)
		}
		p.Initiator = true
		out := NewConn(a, p)
		p.RecvMarkers, p.SendMarkers = p.SendMarkers, false
		in := NewConn(b, p)
		rng := rand.New(rand.NewPCG(1, 2))
		var want [][]byte
		for i := range 3000 {
			n := 18 + rng.IntN(200)
			if i%100 == 99 {
				n = 18 + rng.IntN(60000)
			}
			want = append(want, pattern(n, i))
		}
		go func() {
			for i, u := range want {
				out.Append(u[:18], [][]byte{u[18:]})
				if i%7 == 0 || !out.Room() {
					_, _ = flushAll(out)
					runtime.Gosched()
				}
			}
			_, _ = flushAll(out)
			_ = out.CloseWrite()
		}()
		got := &placer{skip: 18}
		over := make(chan struct{})
		var polls sync.WaitGroup
		for range 3 {
			polls.Go(func() {
				for {
					select {
					case <-over:
						return
					default:
						in.Poll()
						runtime.Gosched()
					}
				}
			})
		}
		err := in.Receive(got)
		close(over)
		nettest.AwaitGroup(t, &polls)
		if !errors.Is(err, io.EOF) || !bytes.Equal(bytes.Join(got.got, nil), bytes.Join(want, nil)) {
			t.Errorf("%s: %v and %d ULPDUs, expected EOF and %d as they were sent", termsName(p), err, len(got.got), len(want))
		}
	}
}

// Close and deadlines do not wait for goroutines that poll without end.
func TestAReceiveThatIsLedEnds(t *testing.T) {
	for _, v := range []struct {
		name string
		end  func(*Conn) error
		want error
	}{
		{"closing", (*Conn).Close, net.ErrClosed},
		{"a deadline", func(c *Conn) error { return c.SetReadDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
	} {
		_, b := tcpPair(t)
		c := NewConn(b, Params{Initiator: true})
		done := make(chan error, 1)
		go func() { done <- c.Receive(&collector{}) }()
		for range 1000 {
			c.Poll()
			runtime.Gosched()
		}
		if err := v.end(c); err != nil {
			t.Fatal(err)
		}
		for err := error(nil); err == nil; {
			select {
			case err = <-done:
				if !hasCode(err, CodeClosed) || !errors.Is(err, v.want) {
					t.Errorf("%s: %v, expected code 1 with %v", v.name, err, v.want)
				}
			default:
				c.Poll()
				runtime.Gosched()
			}
		}
	}
}

// If a call of Poll reads the end of the stream before the network poller has reported
// it, the poller never does. A parked Receive learns of the end nevertheless.
func TestAParkedReceiveLearnsOfTheEndInPoll(t *testing.T) {
	refusal := errors.New("refused")
	for range 20 {
		a, b := tcpPair(t)
		out, in := NewConn(a, Params{Initiator: true}), NewConn(b, Params{Initiator: true})
		done := make(chan error, 1)
		go func() { done <- in.Receive(&collector{refuse: refusal}) }()
		for range 100 {
			runtime.Gosched()
		}
		out.Append(pattern(100, 1), nil)
		_, _ = flushAll(out)
		in.Poll()
		if err := nettest.Await(t, done); err != refusal {
			t.Fatalf("%v, expected %v", err, refusal)
		}
		_ = out.CloseWrite()
		if err := in.Drain(); err != nil {
			t.Fatalf("afterwards: %v", err)
		}
	}
}

// A resetter resets its stream as soon as it is handed something, as those do whose
// answer cannot be sent.
type resetter struct {
	collector
	c *Conn
}

func (r *resetter) Idle() { _ = r.c.Reset() }

// A goroutine that polls may have to reset the stream, which waits for a Receive that is
// reading.
func TestThoseWhoPollMayResetTheStream(t *testing.T) {
	for range 20 {
		a, b := tcpPair(t)
		out, in := NewConn(a, Params{Initiator: true}), NewConn(b, Params{Initiator: true})
		done := make(chan error, 1)
		go func() { done <- in.Receive(&resetter{c: in}) }()
		for range 100 {
			in.Poll()
			runtime.Gosched()
		}
		out.Append(pattern(100, 1), nil)
		_, _ = flushAll(out)
		for err := error(nil); err == nil; {
			select {
			case err = <-done:
			default:
				in.Poll()
				runtime.Gosched()
			}
		}
	}
}

// quiet takes a connection out of Go's network poller.
func quiet(t *testing.T, nc *net.TCPConn) net.Conn {
	t.Helper()
	c, err := polled.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// A hesitant Sink has to wait for each ULPDU until it may go on.
type hesitant struct {
	*placer
	goOn chan struct{}
}

func (*hesitant) WouldBlock([]byte) bool { return true }
func (h *hesitant) ULPDU(u []byte) error {
	<-h.goOn
	return h.placer.ULPDU(u)
}

// Who polls does not wait for what the Sink needs: that is left to Receive.
func TestWhoPollsLeavesToReceiveWhatHasToBeWaitedFor(t *testing.T) {
	a, b := tcpPair(t)
	out, in := NewConn(a, Params{Initiator: true, CRC: true}), NewConn(quiet(t, b), Params{CRC: true})
	if !in.PollNeverBlocks() {
		t.Fatal("it would wait")
	}
	sink := &hesitant{&placer{skip: 18}, make(chan struct{})}
	ended := make(chan error, 1)
	go func() { ended <- in.Receive(sink) }()
	for i := range 100 {
		out.Append(pattern(18, i), nil)
		if _, err := flushAll(out); err != nil {
			t.Fatal(err)
		}
		for range i {
			in.Poll() // it would not return
		}
		sink.goOn <- struct{}{}
	}
	_ = out.CloseWrite()
	if err := <-ended; err != io.EOF {
		t.Errorf("it ended with %v", err)
	}
	if n := len(sink.got); n != 100 {
		t.Errorf("%d ULPDUs, expected 100", n)
	}
}

// Who waits for the descriptor in the place of Receive finds what comes, and Receive does
// again when the wait is given back.
func TestTheWaitIsTakenAndGivenBack(t *testing.T) {
	a, b := tcpPair(t)
	out, in := NewConn(a, Params{Initiator: true}), NewConn(quiet(t, b), Params{})
	sink := &hesitant{&placer{skip: 18}, make(chan struct{}, 1)}
	ended := make(chan error, 1)
	go func() { ended <- in.Receive(sink.placer) }()
	fd, ok := uintptr(0), false
	for !ok { // until Receive has begun
		fd, ok = in.BeginWait()
		runtime.Gosched()
	}
	out.Append(pattern(18, 1), nil)
	if _, err := flushAll(out); err != nil {
		t.Fatal(err)
	}
	for !socket.Readable(fd) {
		runtime.Gosched()
	}
	in.EndWait(true)
	if !in.Poll() {
		t.Error("nothing was found")
	}
	if _, ok := in.BeginWait(); !ok {
		t.Error("the wait cannot be taken again")
	}
	out.Append(pattern(18, 2), nil)
	_, _ = flushAll(out)
	_ = out.CloseWrite()
	in.EndWait(false)
	if err := <-ended; err != io.EOF || len(sink.got) != 2 {
		t.Errorf("%d ULPDUs, %v, expected 2 and the end", len(sink.got), err)
	}
}

// A landlord notes whether its visitors have the token.
type landlord struct {
	polledConn
	c      *Conn
	visits []bool
}

func (l *landlord) Visit() {
	free := l.c.turns.Enter()
	if free {
		l.c.turns.Exit(0, false)
	}
	l.visits = append(l.visits, !free)
	l.polledConn.Visit()
}

// A visit is noted with the token: whoever has it afterwards and leaves something to Receive
// wakes it, and no visit comes between, which would keep it asleep for some ms.
func TestVisitsAreNotedWithTheToken(t *testing.T) {
	_, b := tcpPair(t)
	in := NewConn(quiet(t, b), Params{})
	l := &landlord{polledConn: in.polled, c: in}
	in.polled = l
	go func() { _ = in.Receive(&collector{}) }()
	for ok := false; !ok; { // until Receive has begun
		_, ok = in.BeginWait()
		runtime.Gosched()
	}
	in.EndWait(true)
	for len(l.visits) < 2 { // Receive may have the token
		in.Poll()
		runtime.Gosched()
	}
	if !slices.Equal(l.visits, []bool{true, true}) {
		t.Errorf("visits with the token: %v, expected two", l.visits)
	}
}
