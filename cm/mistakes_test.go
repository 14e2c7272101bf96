package cm_test

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// mistakes are Params that cannot be, and what the error says; nil is an error
// that has no name.
var mistakes = []struct {
	name string
	p    cm.Params
	want error
}{
	{"private data too long", cm.Params{PrivateData: make([]byte, 513)}, mpa.ErrPrivateData},
	{"IRD beyond the RNIC's", cm.Params{MPA: mpa.Config{IRD: 257}}, verbs.ErrIRD},
	{"ORD beyond the RNIC's", cm.Params{MPA: mpa.Config{ORD: 257}}, verbs.ErrORD},
	{"an FPDU longer than can be", cm.Params{MPA: mpa.Config{MaxULPDU: 1 << 20}}, nil},
}

// Connect owns the connection that it is given, whatever this side did wrong:
// it is closed before anything was asked. A queue pair that is not Idle leaves
// it the caller's.
func TestConnectClosesWhatItOwns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnd(t, verbs.QPConfig{})
		for _, m := range mistakes {
			ours, theirs := iwarptest.Pipe()
			if _, err := cm.Connect(t.Context(), e.qp, ours, m.p); err == nil || m.want != nil && !errors.Is(err, m.want) {
				t.Errorf("%s: %v, expected %v", m.name, err, m.want)
			}
			if said, err := heard(theirs); len(said) > 0 || err != nil {
				t.Errorf("%s: the peer has % x, %v, expected the end", m.name, said, err)
			}
			if s := e.qp.State(); s != verbs.Idle {
				t.Errorf("%s: the queue pair is %v", m.name, s)
			}
		}
		e.qp.Abort()
		ours, theirs := iwarptest.Pipe()
		if _, err := cm.Connect(t.Context(), e.qp, ours, cm.Params{}); !errors.Is(err, cm.ErrNotIdle) {
			t.Errorf("%v, expected %v", err, cm.ErrNotIdle)
		}
		if said, err := heard(theirs); len(said) > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the peer has % x, %v, expected silence", said, err)
		}
	})
}

// heard is all that comes within a minute, up to the end.
func heard(nc net.Conn) ([]byte, error) {
	_ = nc.SetReadDeadline(time.Now().Add(time.Minute)) // in memory it cannot fail
	return io.ReadAll(nc)
}

// A request outlives what its acceptor did wrong, and the peer hears nothing of
// it.
func TestARequestOutlivesTheMistakesOfItsAcceptor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newEnd(t, verbs.QPConfig{}), newEnd(t, verbs.QPConfig{})
		x, y := iwarptest.Pipe()
		done := make(chan error)
		go func() {
			_, err := cm.Connect(t.Context(), a.qp, x, cm.Params{})
			done <- err
		}()
		r, err := cm.Receive(t.Context(), y, mpa.Config{})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range mistakes {
			if _, err := r.Accept(t.Context(), b.qp, m.p); err == nil || m.want != nil && !errors.Is(err, m.want) {
				t.Errorf("%s: %v, expected %v", m.name, err, m.want)
			}
		}
		_, err = r.Accept(t.Context(), b.qp, cm.Params{})
		if err := errors.Join(err, <-done); err != nil {
			t.Error(err)
		}
	})
}

// However much a peer asks for, IRD does not grow beyond what the RNIC can do.
func TestIRDGrowsNoFurtherThanTheRNICAllows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newEnd(t, verbs.QPConfig{})
		b := newEndOf(t, verbs.Config{Limits: verbs.Limits{IRD: 5}}, verbs.QPConfig{})
		x, y := iwarptest.Pipe()
		done := make(chan error)
		go func() {
			_, err := cm.Connect(t.Context(), a.qp, x, cm.Params{MPA: mpa.Config{ORD: 100}})
			done <- err
		}()
		r, err := cm.Receive(t.Context(), y, mpa.Config{})
		if err != nil {
			t.Fatal(err)
		}
		c, err := r.Accept(t.Context(), b.qp, cm.Params{MPA: mpa.Config{MaxIRD: 100}})
		if err := errors.Join(err, <-done); err != nil {
			t.Fatal(err)
		}
		if c.IRD() != 5 {
			t.Errorf("IRD is %d, expected 5", c.IRD())
		}
	})
}

// What a rejection may be about is in its text, if the start-up shows it.
func TestARejectionSaysWhatItMayBeAbout(t *testing.T) {
	a, b := newEnd(t, verbs.QPConfig{IRD: 2, ORD: 2}), newEnd(t, verbs.QPConfig{IRD: 9, ORD: 9})
	for markers, want := range map[bool]string{false: "needs an ORD of 9, and was offered an IRD of 2", true: "Markers"} {
		cfg := mpa.Config{IRD: 9, ORD: 9}
		ln := listen(t, b, "tcp4", cm.ListenConfig{MPA: cfg})
		done := accepted(t.Context(), ln, func(r *cm.Request) error { return r.Reject(nil) })
		_, err := cm.Dial(t.Context(), a.qp, "tcp", ln.Addr().String(), cm.Params{MPA: mpa.Config{Markers: markers}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("markers %t: %v, expected something about %q", markers, err, want)
		}
		if err := nettest.Await(t, done); err != nil {
			t.Error(err)
		}
	}
}
