// The fast path: attempts that do not wait, payload referred to and placed.

package mpa

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
)

func TestResetIsSeenAsSuchByAPeerOverTCP(t *testing.T) {
	for _, name := range []string{"tcp", "wrapped"} {
		a, b := media[name](t)
		if err := NewConn(a, Params{}).Reset(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
		err := NewConn(b, Params{Initiator: true}).Receive(&collector{})
		if !hasCode(err, CodeClosed) || !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: the peer has %v, expected code 1, connection reset", name, err)
		}
	}
}

// A read that fails has read nothing, whatever the one before it did: with CRC
// into the read-ahead buffer, without it into memory of the Sink.
func TestAResetAddsNoOctetsToWhatCameBefore(t *testing.T) {
	for _, p := range []Params{{CRC: true, Initiator: true}, {Initiator: true}} {
		// In the default buffer what was read fits once, and not twice.
		_, wire, _ := wireOf(p, 60000)
		wire = wire[:firstReadBuffer-1]
		a, b := tcpPair(t)
		c := NewConn(b, p)
		done := make(chan error, 1)
		go func() { done <- c.Receive(&placer{skip: 14}) }()
		if _, err := a.Write(wire); err != nil {
			t.Fatal(err)
		}
		nettest.Until(t, func() bool { return c.Stats().OctetsIn >= uint64(len(wire)) || len(done) > 0 })
		if err := errors.Join(a.SetLinger(0), a.Close()); err != nil {
			t.Fatal(err)
		}
		if err := nettest.Await(t, done); !hasCode(err, CodeClosed) || !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: %v, expected code 1, connection reset", termsName(p), err)
		}
		if n := c.Stats().OctetsIn; n != uint64(len(wire)) {
			t.Errorf("%s: %d octets were counted, %d were sent", termsName(p), n, len(wire))
		}
	}
}

// smallBuffer makes writes partial, a few KiB at a time.
func smallBuffer(t testing.TB, c *net.TCPConn) {
	t.Helper()
	if err := c.SetWriteBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
}

// fill appends ULPDUs to c, and keeps them, until the socket takes no more.
func fill(t testing.TB, c *Conn) (ulpdus [][]byte) {
	t.Helper()
	for {
		u := pattern(30000, len(ulpdus))
		ulpdus = append(ulpdus, u)
		c.Append(u[:18], [][]byte{u[18:100], u[100:]})
		drained, err := c.Flush(false)
		if err != nil {
			t.Fatal(err)
		}
		if !drained {
			return ulpdus
		}
	}
}

// What the peer gets is what was digested; without CRC there is nothing to keep
// to.
func TestVolatilePayloadIsCopiedUnderACRCOnly(t *testing.T) {
	for _, crc := range []bool{true, false} {
		a, b := tcpPair(t)
		out, in := NewConn(a, Params{Initiator: true, CRC: crc}), NewConn(b, Params{CRC: crc})
		header, payload := pattern(18, 1), pattern(50000, 2)
		before := bytes.Clone(payload)
		if copied := out.AppendVolatile(header, [][]byte{payload[:10000], payload[10000:]}); copied != crc {
			t.Errorf("CRC %t: copied %t", crc, copied)
		}
		clear(payload)
		if _, err := flushAll(out); err != nil {
			t.Fatal(err)
		}
		out.CloseWrite()
		var got collector
		if err := in.Receive(&got); err != io.EOF {
			t.Fatalf("CRC %t: %v, expected the end of the stream", crc, err)
		}
		want := slices.Concat(header, payload)
		if crc {
			want = slices.Concat(header, before)
		}
		if len(got.got) != 1 || !bytes.Equal(got.got[0], want) {
			t.Errorf("CRC %t: the peer got something else", crc)
		}
	}
}

func TestAFlushThatMayNotWaitLeavesWhatTheSocketDoesNotTake(t *testing.T) {
	for _, p := range []Params{{}, {CRC: true}, {CRC: true, SendMarkers: true}} {
		a, b := tcpPair(t)
		smallBuffer(t, a)
		p.Initiator = true
		c := NewConn(a, p)
		if !c.CanTry() {
			t.Fatal("CanTry is false over TCP")
		}
		want := fill(t, c)
		for c.Room() {
			u := pattern(5000, 1)
			want = append(want, u)
			c.Append(u, nil)
		}
		if drained, err := c.Flush(false); drained || err != nil {
			t.Fatalf("drained %t, %v, expected false", drained, err)
		}
		if w := c.Written(); w >= c.Appended() {
			t.Fatalf("%d of %d written, expected fewer", w, c.Appended())
		}
		done := make(chan error, 1)
		go func() {
			drained, err := flushAll(c)
			if !drained && err == nil {
				err = errors.New("Flush(true) did not drain")
			}
			done <- errors.Join(err, c.CloseWrite())
		}()
		p.RecvMarkers = p.SendMarkers
		s := &placer{skip: 18}
		if err := NewConn(b, p).Receive(s); err != io.EOF {
			t.Errorf("%v, expected EOF", err)
		}
		if err := nettest.Await(t, done); err != nil {
			t.Error(err)
		}
		if got, want := bytes.Join(s.got, nil), bytes.Join(want, nil); !bytes.Equal(got, want) {
			t.Errorf("%d octets arrived, expected %d, or they differ", len(got), len(want))
		}
		if c.Written() != c.Appended() || int(c.Appended()) != len(want) {
			t.Errorf("%d written, %d appended, expected %d", c.Written(), c.Appended(), len(want))
		}
	}
}

// The frame in progress stays, those behind it go, and a last one follows.
func TestALastWordFollowsTheFrameInProgress(t *testing.T) {
	for _, p := range []Params{{}, {CRC: true}, {CRC: true, SendMarkers: true}} {
		a, b := tcpPair(t)
		smallBuffer(t, a)
		p.Initiator = true
		c := NewConn(a, p)
		fill(t, c)
		for c.Room() {
			c.Append(pattern(20000, 1), nil)
		}
		kept := c.Truncate(c.Written())
		if kept > c.Written()+1 {
			t.Fatalf("%d ULPDUs kept, %d written: expected at most one more", kept, c.Written())
		}
		c.Append([]byte("last word"), nil)
		done := make(chan error, 1)
		go func() {
			_, err := flushAll(c)
			done <- errors.Join(err, c.CloseWrite())
		}()
		p.RecvMarkers = p.SendMarkers
		s := &collector{}
		if err := NewConn(b, p).Receive(s); err != io.EOF {
			t.Errorf("%v, expected EOF", err)
		}
		if err := nettest.Await(t, done); err != nil {
			t.Error(err)
		}
		if n := uint64(len(s.got)); n != kept+1 || string(s.got[n-1]) != "last word" {
			t.Errorf("%d ULPDUs arrived, expected %d and the last word", n, kept)
		}
	}
}

// The test would hang if memory were held while the socket takes nothing.
func TestMemoryCanBeRevokedWhileAWriteWaits(t *testing.T) {
	a, b := tcpPair(t)
	smallBuffer(t, a)
	c := NewConn(a, Params{Initiator: true})
	l := &latch{released: make(chan struct{}, 1)}
	fill(t, c)
	c.Guard(l)
	done := make(chan error)
	go func() {
		_, err := flushAll(c)
		done <- err
	}()
	nettest.Await(t, l.released) // one attempt has been made
	l.revoke()
	sent := c.batch.Sent() // nothing is written any more
	go io.Copy(io.Discard, b)
	if err := nettest.Await(t, done); err != ErrRevoked {
		t.Errorf("%v, expected ErrRevoked", err)
	}
	if got := c.batch.Sent(); got != sent {
		t.Errorf("%d octets were written after the memory was revoked", got-sent)
	}
}

// A revocable takes ULPDUs straight into memory that can be revoked.
type revocable struct {
	placer
	mu      sync.Mutex
	revoked bool
	tried   chan struct{}
}

var errRevoked = errors.New("revoked")

func (r *revocable) Window(dst [][]byte, off int) ([][]byte, error) {
	r.mu.Lock()
	if r.revoked {
		r.mu.Unlock()
		return nil, errRevoked
	}
	return r.placer.Window(dst, off)
}

func (r *revocable) Release() {
	r.placer.Release()
	r.mu.Unlock()
	select {
	case r.tried <- struct{}{}:
	default:
	}
}

// The test would hang if memory were held while the peer sends nothing.
func TestMemoryCanBeRevokedWhileThePeerTrickles(t *testing.T) {
	a, b := tcpPair(t)
	_, wire, _ := wireOf(Params{}, 60000)
	s := &revocable{placer: placer{skip: 14}, tried: make(chan struct{}, 10)}
	done := make(chan error)
	go func() { done <- NewConn(b, Params{Initiator: true}).Receive(s) }()
	if _, err := a.Write(wire[:100]); err != nil {
		t.Fatal(err)
	}
	nettest.Await(t, s.tried) // what came with the header
	nettest.Await(t, s.tried) // an attempt that found nothing, or the rest
	s.mu.Lock()
	s.revoked = true
	before := bytes.Clone(s.place)
	s.mu.Unlock()
	if _, err := a.Write(wire[100:]); err != nil {
		t.Fatal(err)
	}
	if err := nettest.Await(t, done); err != errRevoked {
		t.Errorf("%v, expected the sink's error as it is", err)
	}
	if !bytes.Equal(s.place, before) {
		t.Error("memory changed after it was revoked")
	}
}

// A shredder's memory is in more pieces than the kernel takes at once.
type shredder struct {
	placer
	piece int
}

func (s *shredder) Window(dst [][]byte, off int) ([][]byte, error) {
	for rest := s.place[off:]; len(rest) > 0; {
		n := min(s.piece, len(rest))
		dst = append(dst, rest[:n], nil)
		rest = rest[n:]
	}
	return dst, nil
}

func TestMemoryInManyPiecesIsFilledInOrder(t *testing.T) {
	a, b := tcpPair(t)
	want, wire, _ := wireOf(Params{}, 60000, 64768, 64767, 30)
	go func() {
		a.Write(wire[:100])
		a.Write(wire[100:])
		a.CloseWrite()
	}()
	s := &shredder{placer: placer{skip: 14}, piece: 20}
	if err := NewConn(b, Params{Initiator: true}).Receive(s); err != io.EOF {
		t.Errorf("%v, expected EOF", err)
	}
	if !bytes.Equal(bytes.Join(s.got, nil), bytes.Join(want, nil)) {
		t.Errorf("%d ULPDUs arrived, expected %d, or they differ", len(s.got), len(want))
	}
}

// Over TCP, too, whatever of the stream has arrived when ULPDUs are looked for.
func TestULPDUsThatJoinAreTheSameOverTCP(t *testing.T) {
	a, b := tcpPair(t)
	want, wire, _ := wireOf(Params{}, manyLengths()...)
	go func() {
		a.Write(wire)
		a.CloseWrite()
	}()
	s := &joiner{skip: 14, most: 16}
	if err := NewConn(b, Params{Initiator: true}).Receive(s); err != io.EOF {
		t.Errorf("%v, expected EOF", err)
	}
	if !bytes.Equal(bytes.Join(s.got, nil), bytes.Join(want, nil)) {
		t.Errorf("%d ULPDUs arrived, expected %d, or they differ", len(s.got), len(want))
	}
}

func TestASinkWithTooLittleMemoryEndsTheReception(t *testing.T) {
	_, wire, _ := wireOf(Params{}, 60000)
	a, b := tcpPair(t)
	go a.Write(wire[:200])
	if err := NewConn(b, Params{Initiator: true}).Receive(&miser{placer{skip: 14}}); err == nil || errors.Is(err, io.EOF) || hasCode(err, CodeClosed) {
		t.Errorf("%v, expected an error about the sink", err)
	}
}

// A miser has an octet too few.
type miser struct{ placer }

func (m *miser) Window(dst [][]byte, off int) ([][]byte, error) {
	return append(dst, m.place[off:len(m.place)-1]), nil
}
