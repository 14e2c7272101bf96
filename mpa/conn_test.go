// A Conn as its user sees it, over TCP and over any net.Conn.

package mpa

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/mpa/internal/fpdu/fpdutest"
)

// tcpPair is the two ends of a loopback connection.
func tcpPair(t testing.TB) (a, b *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	p, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close(); p.Close() })
	return d.(*net.TCPConn), p.(*net.TCPConn)
}

// Some of them are longer than MULPDU, which MPA need not carry, and does.
//
// Claims: MPA-1.2-1 MPA-1.2-2 MPA-3-6
func TestULPDUsArriveWholeAndInOrder(t *testing.T) {
	terms := []Params{{}, {CRC: true}, {SendMarkers: true, RecvMarkers: true}, {CRC: true, SendMarkers: true, RecvMarkers: true}}
	for _, p := range terms {
		for _, medium := range []string{"tcp", "pipe"} {
			t.Run(fmt.Sprintf("%s/crc=%t/markers=%t", medium, p.CRC, p.SendMarkers), func(t *testing.T) {
				var a, b net.Conn
				if medium == "tcp" {
					a, b = tcpPair(t)
				} else {
					a, b = net.Pipe()
				}
				p.Revision, p.Initiator = Revision1, true
				out, in := NewConn(a, p), NewConn(b, p)
				var want [][]byte
				for i := range 300 {
					n := []int{1, 2, 3, 4, 18, 100, 511, 1500, 4096, 32000, 64768}[i%11]
					want = append(want, pattern(n, i))
				}
				done := make(chan error)
				go func() {
					for _, u := range want {
						h := min(len(u), 18)
						for !out.Room() {
							if _, err := flushAll(out); err != nil {
								done <- err
								return
							}
						}
						out.Append(u[:h], [][]byte{u[h:]})
					}
					_, err := flushAll(out)
					done <- errors.Join(err, out.CloseWrite())
				}()
				s := &placer{skip: 14}
				if err := in.Receive(s); err != io.EOF {
					t.Errorf("Receive: %v, expected EOF", err)
				}
				if err := nettest.Await(t, done); err != nil {
					t.Error(err)
				}
				if len(s.got) != len(want) {
					t.Fatalf("%d ULPDUs arrived, expected %d", len(s.got), len(want))
				}
				for i := range want {
					if !bytes.Equal(s.got[i], want[i]) {
						t.Fatalf("ULPDU %d of %d octets differs", i, len(want[i]))
					}
				}
				if out.Written() != 300 || in.Stats().FPDUsIn != 300 {
					t.Errorf("counted %d out, %d in, expected 300", out.Written(), in.Stats().FPDUsIn)
				}
			})
		}
	}
}

// Claims: MPA-3-9 MPA-C.1-1 MPA-C.1-2
func TestTheVersionFollowsTheRevision(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	for rev, want := range map[Revision]uint8{RevisionRDMAC: 0, Revision1: 1, Revision2: 1} {
		if got := NewConn(a, Params{Revision: rev}).Version(); got != want {
			t.Errorf("%v: DDP version %d, expected %d", rev, got, want)
		}
	}
}

// media are the kinds of connection: the one with a fast path, and any other.
var media = map[string]func(t testing.TB) (a, b net.Conn){
	"tcp":     func(t testing.TB) (net.Conn, net.Conn) { return tcpPair(t) },
	"wrapped": func(t testing.TB) (net.Conn, net.Conn) { a, b := tcpPair(t); return wrapped{a}, wrapped{b} },
	"pipe": func(t testing.TB) (net.Conn, net.Conn) {
		a, b := net.Pipe()
		t.Cleanup(func() { a.Close(); b.Close() })
		return a, b
	},
}

func eachMedium(t *testing.T, f func(t *testing.T, a, b net.Conn)) {
	for name, pair := range media {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t)
			f(t, a, b)
		})
	}
}

// Claims: MPA-3-5
func TestAULPDUOfAnImpossibleLengthIsRefused(t *testing.T) {
	for _, n := range []int{0, MaxMULPDU + 1, 1 << 20} {
		a, b := net.Pipe()
		defer a.Close()
		defer b.Close()
		payload := [][]byte{make([]byte, n/2), make([]byte, n-n/2)}
		for name, add := range map[string]func(c *Conn){
			"Append":         func(c *Conn) { c.Append(nil, payload) },
			"AppendVolatile": func(c *Conn) { c.AppendVolatile(nil, payload) },
			"AppendRun":      func(c *Conn) { c.AppendRun(nil, 0, [][]byte{make([]byte, n)}) },
		} {
			c := NewConn(a, Params{Initiator: true, CRC: true})
			add(c)
			if c.Appended() != 0 {
				t.Fatalf("%s, %d octets: appended", name, n) // and nobody reads it
			}
			if _, err := flushAll(c); err == nil {
				t.Errorf("%s, %d octets: Flush tells nothing", name, n)
			}
		}
	}
}

// Claims: MPA-7.1.2-12
func TestAResponderSendsNothingBeforeTheFirstFrameOfItsPeer(t *testing.T) {
	eachMedium(t, func(t *testing.T, a, b net.Conn) {
		initiator, responder := NewConn(a, Params{Initiator: true, CRC: true}), NewConn(b, Params{CRC: true, SendMarkers: true})
		responder.Append([]byte("held"), nil)
		for _, wait := range []bool{false, true} {
			drained, err := responder.Flush(wait)
			if drained || err != nil || responder.Written() != 0 || !responder.Fenced() {
				t.Fatalf("Flush(%t): drained %t, %v, %d written, expected nothing to happen", wait, drained, err, responder.Written())
			}
		}
		if s := responder.Stats(); s.OctetsOut != 0 || s.Writes != 0 {
			t.Fatalf("%d octets were written before the first frame, expected none", s.OctetsOut)
		}
		sent := make(chan error, 1)
		go func() {
			initiator.Append([]byte("first"), nil)
			_, err := flushAll(initiator)
			sent <- err
		}()
		stop := errors.New("enough")
		if err := responder.Receive(&collector{refuse: stop}); err != stop {
			t.Fatal(err)
		}
		if err := nettest.Await(t, sent); err != nil {
			t.Fatal(err)
		}
		go func() {
			drained, err := flushAll(responder)
			if err == nil && !drained {
				err = errors.New("not drained")
			}
			sent <- err
		}()
		buf := make([]byte, 16)
		if _, err := io.ReadFull(a, buf); err != nil {
			t.Fatal(err)
		}
		if want := encode(0, []byte("held"), true, true); !bytes.Equal(buf, want) {
			t.Errorf("%x was sent, expected %x", buf, want)
		}
		if err := nettest.Await(t, sent); err != nil || responder.Written() != 1 {
			t.Errorf("%v, %d written, expected 1", err, responder.Written())
		}
	})
}

// A latch is a Guard whose memory can be revoked while it is not held.
type latch struct {
	mu       sync.Mutex
	revoked  bool
	released chan struct{} // gets a token after each hold, if there is room
}

func (l *latch) Acquire() bool {
	l.mu.Lock()
	if l.revoked {
		l.mu.Unlock()
		return false
	}
	return true
}

func (l *latch) Release() {
	l.mu.Unlock()
	select {
	case l.released <- struct{}{}:
	default:
	}
}

func (l *latch) revoke() {
	l.mu.Lock()
	l.revoked = true
	l.mu.Unlock()
}

// Claims: R-8.1.1-6 DDP-8.3.1-6
func TestNothingIsWrittenOnceMemoryIsRevoked(t *testing.T) {
	eachMedium(t, func(t *testing.T, a, b net.Conn) {
		c := NewConn(a, Params{Initiator: true})
		l := &latch{}
		c.Guard(l)
		l.revoke()
		c.Append(pattern(18, 1), [][]byte{pattern(50000, 1)})
		if drained, err := flushAll(c); drained || err != ErrRevoked || c.Stats().OctetsOut != 0 {
			t.Fatalf("drained %t, %v, %d octets out, expected ErrRevoked and none", drained, err, c.Stats().OctetsOut)
		}
		// The ULP drops the frame and sends its last word.
		if n := c.Truncate(0); n != 0 {
			t.Fatalf("%d ULPDUs remain, expected none", n)
		}
		c.Guard(nil)
		done := make(chan error, 1)
		go func() {
			c.Append([]byte("terminate"), nil)
			_, err := flushAll(c)
			done <- errors.Join(err, c.CloseWrite())
		}()
		s := &collector{}
		if err := NewConn(b, Params{}).Receive(s); err != io.EOF && !errors.Is(err, io.EOF) {
			t.Error(err)
		}
		if err := nettest.Await(t, done); err != nil {
			t.Error(err)
		}
		if len(s.got) != 1 || string(s.got[0]) != "terminate" {
			t.Errorf("the peer has %q, expected the last word only", s.got)
		}
	})
}

// A Flush that waits returns when frames have left and more has to be waited
// for: what they were part of is done, whatever becomes of the rest.
func TestAFlushThatWaitsTellsOfTheFramesThatHaveLeft(t *testing.T) {
	eachMedium(t, func(t *testing.T, a, b net.Conn) {
		if tcp, ok := unwrapTCP(a).(*net.TCPConn); ok {
			_ = tcp.SetWriteBuffer(4 << 10) // with a larger one the test says less, and does not fail
		}
		c := NewConn(a, Params{Initiator: true})
		defer c.Close()
		var wire []byte
		var ref fpdutest.Stream
		for c.Room() {
			u := pattern(30000, int(c.Appended()))
			wire = append(wire, ref.Send(u)...)
			c.Append(u[:18], [][]byte{u[18:]})
		}
		got := make([]byte, len(wire))
		more, read := make(chan struct{}), make(chan error, 1)
		go func() {
			_, err := io.ReadFull(b, got[:100000])
			<-more
			_, rest := io.ReadFull(b, got[100000:])
			read <- errors.Join(err, rest)
		}()
		if err := c.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		drained, err := c.Flush(true)
		if err != nil || c.Written() == 0 || drained != (c.Written() == c.Appended()) {
			t.Fatalf("drained %v, %v, with %d of %d written", drained, err, c.Written(), c.Appended())
		}
		close(more)
		if _, err := flushAll(c); err != nil {
			t.Error(err)
		}
		if err := nettest.Await(t, read); err != nil || !bytes.Equal(got, wire) {
			t.Errorf("%v, or other octets arrived than were appended", err)
		}
	})
}

func TestAWriterThatCanOnlyWaitDoesNothingUnlessItMay(t *testing.T) {
	for _, name := range []string{"pipe", "wrapped"} {
		a, _ := media[name](t)
		c := NewConn(a, Params{Initiator: true, CRC: true})
		if c.CanTry() {
			t.Errorf("%s: CanTry is true, expected false", name)
		}
		payload := pattern(8000, 1)
		c.Append(nil, [][]byte{payload})
		before := bytes.Join(c.batch.Pending(), nil)
		clear(payload)
		if !bytes.Equal(bytes.Join(c.batch.Pending(), nil), before) {
			t.Errorf("%s: payload is referred to while a write may wait", name)
		}
		if drained, err := c.Flush(false); drained || err != nil || c.Stats().OctetsOut != 0 {
			t.Errorf("%s: drained %t, %v, %d octets out, expected nothing to happen", name, drained, err, c.Stats().OctetsOut)
		}
	}
}

func TestParamsAndAddressesAreThoseGiven(t *testing.T) {
	a, _ := tcpPair(t)
	p := Params{Revision: Revision2, CRC: true, Early: []byte{1}, IRD: 7}
	c := NewConn(a, p)
	p.Early = nil
	if got := c.Params(); got.IRD != 7 || got.Revision != Revision2 || got.Early != nil {
		t.Errorf("%+v, expected %+v", got, p)
	}
	if c.NetConn() != net.Conn(a) || c.LocalAddr() != a.LocalAddr() || c.RemoteAddr() != a.RemoteAddr() {
		t.Error("connection or addresses are not those of the connection given")
	}
}
