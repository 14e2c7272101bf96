package cm_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// A greedy connection has been read by somebody who took more than was his.
type greedy struct {
	net.Conn
	line  string
	early []byte
}

// greed reads a line of nc, and n octets more that are there or will be.
func greed(t *testing.T, nc net.Conn, line string, n int) greedy {
	t.Helper()
	b := make([]byte, len(line)+n)
	if _, err := io.ReadFull(nc, b); err != nil {
		t.Fatal(err)
	}
	return greedy{nc, string(b[:len(line)]), b[len(line):]}
}

// pairs are connections that can be adopted.
var pairs = map[string]func(t *testing.T) (a, b net.Conn){
	"TCP":    func(t *testing.T) (a, b net.Conn) { return nettest.TCPPair(t, "tcp4") },
	"memory": func(*testing.T) (a, b net.Conn) { return iwarptest.Pipe() },
}

// exchange has both ends send and receive, and closes.
func exchange(t *testing.T, a, b *end) {
	t.Helper()
	for _, e := range []*end{a, b} {
		got := map[uint64]verbs.Status{}
		for range 2 {
			wc := e.next(t)
			got[wc.ID] = wc.Status
		}
		if len(got) != 2 || got[1] != verbs.Success || got[2] != verbs.Success || string(e.buf[:5]) != "hello" {
			t.Errorf("completions %v, %q arrived", got, e.buf[:5])
		}
	}
	if err := a.qp.Close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}
}

// prepare posts a receive and a Send.
func prepare(t *testing.T, e *end) {
	t.Helper()
	copy(e.buf[100:], "hello")
	if err := errors.Join(
		e.qp.PostRecv(verbs.RecvWR{ID: 1, SGL: []verbs.SGE{e.mr.SGE(0, 10)}}),
		e.qp.PostSend(verbs.SendWR{ID: 2, Op: verbs.OpSend, Flags: verbs.Signaled, SGL: []verbs.SGE{e.mr.SGE(100, 5)}}),
	); err != nil {
		t.Fatal(err)
	}
}

// Two consumers talk over a connection and go on as iWARP: the last message goes
// before it, and octets that were read too early are not lost.
//
// Claims: V-6.6.1-1 V-6.6.1-3 V-6.2.1.2-3 V-6.2.1.2-5 V-6.2.1.2-6 V-6.2.2-2 V-13.1-2 V-13.1-3 V-13.1-4 V-13.1-8
// Claims: V-13.1-9
// Claims: R-6.1-1 D-8.1-1
func TestAnEstablishedConnectionIsAdopted(t *testing.T) {
	for _, pair := range pairs {
		for _, early := range []int{0, 1, 2, 5, 19, 20, 27} { // octets; b's first FPDU has more
			nettest.CheckLeaks(t)
			a, b := newEnd(t, verbs.QPConfig{}), newEnd(t, verbs.QPConfig{})
			x, y := pair(t)
			prepare(t, a)
			prepare(t, b)
			passive := make(chan error, 1)
			go func() { // gets the last message, and begins
				g := greed(t, y, "RDMA\n", 0)
				if g.line != "RDMA\n" {
					t.Errorf("the last message is %q", g.line)
				}
				_, err := cm.Adopt(b.qp, y, cm.Adoption{Initiator: true, MPA: mpa.Config{IRD: 2, ORD: 3, MaxULPDU: 512}})
				passive <- err
			}()
			if early == 0 {
				c, err := cm.Adopt(a.qp, x, cm.Adoption{StreamMessage: []byte("RDMA\n")})
				if err := errors.Join(err, nettest.Await(t, passive)); err != nil {
					t.Fatal(err)
				}
				peer, err := b.qp.Query()
				if err != nil {
					t.Fatal(err)
				}
				if c.IRD() != 4 || c.ORD() != 4 || c.MPA().Initiator || c.PrivateData() != nil || peer.IRD != 2 || peer.ORD != 3 {
					t.Errorf("IRD %d, ORD %d, %+v; the peer's %d and %d", c.IRD(), c.ORD(), c.MPA(), peer.IRD, peer.ORD)
				}
			} else { // says it by itself, and reads on
				if _, err := x.Write([]byte("RDMA\n")); err != nil {
					t.Fatal(err)
				}
				g := greed(t, x, "", early)
				_, err := cm.Adopt(a.qp, x, cm.Adoption{Early: g.early})
				if err := errors.Join(err, nettest.Await(t, passive)); err != nil {
					t.Fatal(err)
				}
				clear(g.early) // it is the caller's
			}
			exchange(t, a, b)
		}
	}
}

// What cannot be adopted stays the caller's, as it was.
func TestWhatCannotBeAdoptedStaysTheCallers(t *testing.T) {
	a := newEnd(t, verbs.QPConfig{})
	x, y := nettest.TCPPair(t, "tcp4")
	defer x.Close()
	defer y.Close()
	refused := func(want error, adoption cm.Adoption) {
		t.Helper()
		if _, err := cm.Adopt(a.qp, x, adoption); !errors.Is(err, want) {
			t.Errorf("the error is %v, expected %v", err, want)
		}
		if _, err := x.Write([]byte("still here")); err != nil {
			t.Error(err)
		}
		b := make([]byte, 10)
		if _, err := io.ReadFull(y, b); err != nil || string(b) != "still here" {
			t.Errorf("%q, %v", b, err)
		}
	}
	message := []byte("RDMA\n")
	refused(verbs.ErrORD, cm.Adoption{StreamMessage: message, MPA: mpa.Config{ORD: 257}})
	if a.qp.State() != verbs.Idle {
		t.Errorf("it is %v", a.qp.State())
	}
	a.qp.Abort()
	refused(cm.ErrNotIdle, cm.Adoption{StreamMessage: message})
	if err := a.qp.Reset(); err != nil {
		t.Fatal(err)
	}
	if err := y.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	refused(verbs.ErrLLP, cm.Adoption{StreamMessage: message})
}

// The profiles have their versions, on both sides alike.
func TestAnAdoptedConnectionSpeaksAsItsConsumersAgreed(t *testing.T) {
	for _, cfg := range []mpa.Config{
		{}, {NoCRC: true}, {Markers: true}, {Profile: mpa.ProfileRFC5044}, {Profile: mpa.ProfileRDMAC, NoCRC: true},
	} {
		a, b := newEnd(t, verbs.QPConfig{}), newEnd(t, verbs.QPConfig{})
		x, y := iwarptest.Pipe()
		prepare(t, a)
		prepare(t, b)
		ca, err := cm.Adopt(a.qp, x, cm.Adoption{MPA: cfg, Initiator: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cm.Adopt(b.qp, y, cm.Adoption{MPA: cfg}); err != nil {
			t.Fatal(err)
		}
		p := ca.MPA()
		rdmac := cfg.Profile == mpa.ProfileRDMAC
		if p.CRC != (rdmac || !cfg.NoCRC) || p.SendMarkers != (rdmac || cfg.Markers) || p.RecvMarkers != p.SendMarkers || rdmac != (p.Revision == mpa.RevisionRDMAC) {
			t.Errorf("%+v: the terms are %+v", cfg, p)
		}
		exchange(t, a, b)
	}
}

// MPA's start-up can follow a streaming mode, too: each side says its last before
// its frame, and what it has read of the other's frame is not lost.
//
// Claims: V-6.6.1-1 V-6.2.1.2-6
func TestStartUpFollowsAStreamingMode(t *testing.T) {
	for name, pair := range pairs {
		for _, early := range []int{0, 1, 16, 20, 24} {
			a, b := newEnd(t, verbs.QPConfig{}), newEnd(t, verbs.QPConfig{})
			x, y := pair(t)
			prepare(t, a)
			prepare(t, b)
			answered := make(chan error, 1)
			go func() {
				g := greed(t, y, "go on\n", early)
				if g.line != "go on\n" {
					t.Errorf("%s: the last message is %q", name, g.line)
				}
				req, err := cm.Receive(t.Context(), y, mpa.Config{Early: g.early, StreamMessage: []byte("I will\n")})
				if err == nil {
					_, err = req.Accept(t.Context(), b.qp, cm.Params{})
				}
				answered <- err
			}()
			lines := &lineFirst{Conn: x}
			p := cm.Params{PrivateData: []byte("octets of mine"), MPA: mpa.Config{StreamMessage: []byte("go on\n")}}
			if _, err := cm.Connect(t.Context(), a.qp, lines, p); err != nil {
				t.Fatal(err)
			}
			if err := nettest.Await(t, answered); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(lines.line, []byte("I will\n")) {
				t.Errorf("the answer is %q", lines.line)
			}
			exchange(t, a, b)
		}
	}
}

// A lineFirst reads a line of its own before it lets anybody read.
type lineFirst struct {
	net.Conn
	line []byte
}

func (l *lineFirst) Read(p []byte) (int, error) {
	for !bytes.HasSuffix(l.line, []byte("\n")) {
		var b [1]byte
		if _, err := io.ReadFull(l.Conn, b[:]); err != nil {
			return 0, err
		}
		l.line = append(l.line, b[0])
	}
	return l.Conn.Read(p)
}

func (l *lineFirst) CloseWrite() error { return l.Conn.(interface{ CloseWrite() error }).CloseWrite() }

// Octets that were read early and are more than a frame are an error where nothing
// may follow it.
func TestEarlyOctetsBehindARequestAreRefused(t *testing.T) {
	x, y := iwarptest.Pipe()
	defer y.Close()
	frame, err := mpa.AppendFrame(nil, mpa.Frame{Kind: mpa.RequestFrame, Revision: mpa.Revision1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = cm.Receive(t.Context(), x, mpa.Config{Early: append(frame, 0)})
	if e := (*mpa.Error)(nil); !errors.As(err, &e) || e.Code != mpa.CodeStartup {
		t.Errorf("the error is %v", err)
	}
}
