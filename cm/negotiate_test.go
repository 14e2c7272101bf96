package cm_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/rdmap"
	"github.com/weft-rdma/weft/verbs"
)

// listen makes a listener on a free port, closed when the test ends.
func listen(t testing.TB, e *end, network string, cfg cm.ListenConfig) *cm.Listener {
	t.Helper()
	ln, err := cm.Listen(t.Context(), e.rnic, network, loopback(network), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() }) // the test may have closed it
	return ln
}

func loopback(network string) string {
	if network == "tcp6" {
		return "[::1]:0"
	}
	return "127.0.0.1:0"
}

// newQP makes another queue pair of the end.
func (e *end) newQP(t testing.TB) *verbs.QP {
	t.Helper()
	qp, err := e.pd.CreateQP(verbs.QPConfig{SendCQ: e.cq, RecvCQ: e.cq, IRD: 4, ORD: 4})
	if err != nil {
		t.Fatal(err)
	}
	return qp
}

// accepted answers the next request with f, and sends f's error.
func accepted(ctx context.Context, ln *cm.Listener, f func(*cm.Request) error) <-chan error {
	done := make(chan error, 1)
	go func() {
		req, err := ln.Accept(ctx)
		if err == nil {
			err = f(req)
		}
		done <- err
	}()
	return done
}

// Private data of every length arrives as it was sent, in both directions and
// with a rejection; what is too long is refused before anything is sent.
func TestPrivateDataIsCarriedWhole(t *testing.T) {
	nettest.CheckLeaks(t)
	a, b := newEnd(t, verbs.QPConfig{}), newEnd(t, verbs.QPConfig{})
	ln := listen(t, b, "tcp4", cm.ListenConfig{})
	for _, tt := range []struct {
		name    string
		profile mpa.Profile
		most    int
	}{{"enhanced", mpa.ProfileIETF, 508}, {"revision 1", mpa.ProfileRFC5044, 512}} {
		for _, reject := range []bool{false, true} {
			for _, n := range []int{0, 1, 252, tt.most, tt.most + 1} {
				there, back := bytes.Repeat([]byte{0xA5}, n), bytes.Repeat([]byte{0x5A}, n)
				qa, qb := a.newQP(t), b.newQP(t)
				p := cm.Params{PrivateData: there, MPA: mpa.Config{Profile: tt.profile}}
				if n > tt.most {
					_, err := cm.Dial(t.Context(), qa, "tcp", ln.Addr().String(), p)
					if !errors.Is(err, mpa.ErrPrivateData) || qa.State() != verbs.Idle {
						t.Errorf("%s, %d octets: %v, and the queue pair is %v", tt.name, n, err, qa.State())
					}
					p.PrivateData = nil
				}
				var heard []byte
				var cb *cm.Conn
				done := accepted(t.Context(), ln, func(r *cm.Request) (err error) {
					for {
						heard = r.PrivateData()
						if reject {
							err = r.Reject(back)
						} else {
							cb, err = r.Accept(t.Context(), qb, cm.Params{PrivateData: back})
						}
						if len(back) <= tt.most {
							return err
						}
						if !errors.Is(err, mpa.ErrPrivateData) || qb.State() != verbs.Idle {
							t.Errorf("%s, %d octets in the answer: %v, and the queue pair is %v", tt.name, n, err, qb.State())
						}
						back = back[:tt.most] // the request is as it was
					}
				})
				ca, err := cm.Dial(t.Context(), qa, "tcp", ln.Addr().String(), p)
				if err := nettest.Await(t, done); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(heard, p.PrivateData) {
					t.Errorf("%s: %d octets heard, expected %d", tt.name, len(heard), n)
				}
				var rejected *cm.RejectedError
				var said []byte
				switch {
				case reject && errors.As(err, &rejected):
					said = rejected.PrivateData
					if qa.State() != verbs.Idle || rejected.Addr.String() != ln.Addr().String() {
						t.Errorf("after a rejection by %v the queue pair is %v", rejected.Addr, qa.State())
					}
				case reject || err != nil:
					t.Fatalf("%s, %d octets: %v", tt.name, n, err)
				default:
					said = ca.PrivateData()
					if !bytes.Equal(cb.PrivateData(), p.PrivateData) || ca.QP() != qa || cb.QP() != qb {
						t.Error("the connection is another's")
					}
					if ca.RemoteAddr().String() != cb.LocalAddr().String() || ca.LocalAddr().String() != cb.RemoteAddr().String() {
						t.Errorf("addresses %v, %v; %v, %v", ca.LocalAddr(), ca.RemoteAddr(), cb.LocalAddr(), cb.RemoteAddr())
					}
				}
				if !bytes.Equal(said, back) {
					t.Errorf("%s, reject %v: %d octets answered, expected %d", tt.name, reject, len(said), len(back))
				}
				for _, qp := range []*verbs.QP{qa, qb} {
					if err := qp.Destroy(); err != nil {
						t.Error(err)
					}
				}
			}
		}
	}
}

// RFC 6581 §9.1: what both consumers get, and the limits of both streams.
//
// Claims: V-13.1-6
// Claims: R-6.1-4 R-6.1-7
func TestIRDAndORDAreAgreedAndTold(t *testing.T) {
	const none = int(mpa.NotNegotiated)
	for _, tt := range []struct {
		name   string
		a, b   mpa.Config // of who dials, and who accepts
		asked  [2]int     // what the request says: IRD, ORD
		ca, cb [2]int     // what each gets: IRD, ORD
	}{
		{name: "equal", a: mpa.Config{IRD: 4, ORD: 4}, b: mpa.Config{IRD: 4, ORD: 4}, asked: [2]int{4, 4}, ca: [2]int{4, 4}, cb: [2]int{4, 4}},
		{name: "the acceptor takes less", a: mpa.Config{IRD: 8, ORD: 16}, b: mpa.Config{IRD: 3, ORD: 2}, asked: [2]int{8, 16}, ca: [2]int{8, 3}, cb: [2]int{3, 2}},
		{name: "the acceptor takes more", a: mpa.Config{IRD: 8, ORD: 2}, b: mpa.Config{IRD: 6, ORD: 7}, asked: [2]int{8, 2}, ca: [2]int{8, 2}, cb: [2]int{6, 7}},
		{name: "the acceptor wants more than there is", a: mpa.Config{IRD: 2, ORD: 2}, b: mpa.Config{IRD: 6, ORD: 7}, asked: [2]int{2, 2}, ca: [2]int{2, 2}, cb: [2]int{6, 2}},
		{name: "grown", a: mpa.Config{IRD: 2, ORD: 9}, b: mpa.Config{IRD: 2, ORD: 2, MaxIRD: 9}, asked: [2]int{2, 9}, ca: [2]int{2, 9}, cb: [2]int{9, 2}},
		{name: "left to the consumers", a: mpa.Config{IRD: mpa.NotNegotiated, ORD: mpa.NotNegotiated}, b: mpa.Config{IRD: 3, ORD: 2}, asked: [2]int{none, none}, ca: [2]int{0, 0}, cb: [2]int{3, 2}},
		{name: "revision 1", a: mpa.Config{IRD: 5, ORD: 6, Profile: mpa.ProfileRFC5044}, b: mpa.Config{IRD: 3, ORD: 2}, asked: [2]int{none, none}, ca: [2]int{5, 6}, cb: [2]int{3, 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b := newEnd(t, verbs.QPConfig{}), newEnd(t, verbs.QPConfig{})
			ln := listen(t, b, "tcp4", cm.ListenConfig{})
			var cb *cm.Conn
			done := accepted(t.Context(), ln, func(r *cm.Request) (err error) {
				if got := [2]int{r.IRD(), r.ORD()}; got != tt.asked {
					t.Errorf("the request says %v, expected %v", got, tt.asked)
				}
				if p := r.Peer(); p.Enhanced != (tt.asked != [2]int{none, none}) {
					t.Errorf("the request is %+v", p)
				}
				cb, err = r.Accept(t.Context(), b.qp, cm.Params{MPA: tt.b})
				return err
			})
			ca, err := cm.Dial(t.Context(), a.qp, "tcp", ln.Addr().String(), cm.Params{MPA: tt.a})
			if err := errors.Join(err, nettest.Await(t, done)); err != nil {
				t.Fatal(err)
			}
			for _, side := range []struct {
				c    *cm.Conn
				want [2]int
			}{{ca, tt.ca}, {cb, tt.cb}} {
				terms, err := side.c.QP().Query()
				if err != nil {
					t.Fatal(err)
				}
				if got := [2]int{side.c.IRD(), side.c.ORD()}; got != side.want || [2]int{terms.IRD, terms.ORD} != side.want {
					t.Errorf("IRD and ORD are %v and %v, expected %v", got, [2]int{terms.IRD, terms.ORD}, side.want)
				}
			}
			if p := ca.MPA(); p.Initiator == cb.MPA().Initiator || p.CRC != cb.MPA().CRC {
				t.Errorf("terms %+v and %+v", ca.MPA(), cb.MPA())
			}
		})
	}
}

// The CRC is left out only if both sides decline it, which neither does by default.
//
// Claims: MPA-4.4-2 MPA-4.4-3
func TestCRCGoesOnlyIfNeitherSideWantsIt(t *testing.T) {
	for _, tt := range []struct{ a, b, crc bool }{{true, true, false}, {true, false, true}, {false, true, true}, {false, false, true}} {
		a, b := newEnd(t, verbs.QPConfig{}), newEnd(t, verbs.QPConfig{})
		ca, cb := connect(t, a, b, cm.Params{MPA: mpa.Config{NoCRC: tt.a}}, cm.Params{MPA: mpa.Config{NoCRC: tt.b}})
		if ca.MPA().CRC != tt.crc || cb.MPA().CRC != tt.crc {
			t.Errorf("NoCRC %v and %v: CRC is %v and %v, expected %v", tt.a, tt.b, ca.MPA().CRC, cb.MPA().CRC, tt.crc)
		}
	}
}

// A responder that knows revision 1 only closes on an enhanced request; the
// dialer tries again without, if it may (RFC 6581 §10).
func TestDialFallsBackToRevision1(t *testing.T) {
	nettest.CheckLeaks(t)
	a, b := newEnd(t, verbs.QPConfig{}), newEnd(t, verbs.QPConfig{})
	old := mpa.Config{Profile: mpa.ProfileRFC5044}
	ln := listen(t, b, "tcp4", cm.ListenConfig{MPA: old})
	p := cm.Params{PrivateData: []byte("hello"), MPA: mpa.Config{PeerToPeer: true}}
	if _, err := cm.Dial(t.Context(), a.qp, "tcp", ln.Addr().String(), p); !errors.Is(err, mpa.ErrUnanswered) || a.qp.State() != verbs.Idle {
		t.Fatalf("without fallback: %v, and the queue pair is %v", err, a.qp.State())
	}
	done := accepted(t.Context(), ln, func(r *cm.Request) error {
		if string(r.PrivateData()) != "hello" {
			t.Errorf("private data %q", r.PrivateData())
		}
		_, err := r.Accept(t.Context(), b.qp, cm.Params{MPA: old})
		return err
	})
	p.Fallback = true
	c, err := cm.Dial(t.Context(), a.qp, "tcp", ln.Addr().String(), p)
	if err := errors.Join(err, nettest.Await(t, done)); err != nil {
		t.Fatal(err)
	}
	if c.MPA().Revision != mpa.Revision1 || c.MPA().Enhanced {
		t.Errorf("terms %+v", c.MPA())
	}
}

// Terms that cannot be met end with a Terminate message to the peer, on both
// sides with an error, and with queue pairs that are as they were.
//
// Claims: ME-9.3-2 ME-9.2-10
func TestTermsThatCannotBeMetAreTold(t *testing.T) {
	nettest.CheckLeaks(t)
	a, b := newEnd(t, verbs.QPConfig{}), newEnd(t, verbs.QPConfig{})
	ln := listen(t, b, "tcp4", cm.ListenConfig{})
	for _, tt := range []struct {
		name string
		p    cm.Params
		code mpa.Code
	}{
		{"no queue pair", cm.Params{}, mpa.CodeCatastrophic},
		{"no RTR in common", cm.Params{MPA: mpa.Config{PeerToPeer: true, RTR: mpa.RTRSend}}, mpa.CodeNoRTR},
	} {
		qa, qb := a.newQP(t), b.newQP(t)
		done := accepted(t.Context(), ln, func(r *cm.Request) error {
			if tt.code == mpa.CodeCatastrophic {
				if err := qa.Destroy(); err != nil { // after the request has left
					return err
				}
			}
			_, err := r.Accept(t.Context(), qb, cm.Params{MPA: mpa.Config{RTR: mpa.RTRRead}})
			return err
		})
		_, err := cm.Dial(t.Context(), qa, "tcp", ln.Addr().String(), tt.p)
		// A responder of a peer-to-peer stream waits, and gets the error.
		if accept := nettest.Await(t, done); tt.p.MPA.PeerToPeer && !errors.Is(accept, &rdmap.TerminateError{Layer: rdmap.LayerLLP, Code: uint8(tt.code)}) {
			t.Errorf("%s: accepted: %v", tt.name, accept)
		}
		var e *mpa.Error
		if !errors.As(err, &e) || e.Code != tt.code {
			t.Errorf("%s: %v, expected code %v", tt.name, err, tt.code)
		}
		if s, err := qb.WaitState(t.Context(), verbs.Error); err != nil {
			t.Errorf("%s: the acceptor is %v", tt.name, s)
		}
		if _, _, code := codeOf(qb.Err()); code != uint8(tt.code) {
			t.Errorf("%s: the acceptor's error is %v, expected 2/0/%02x", tt.name, qb.Err(), tt.code)
		}
	}
}

func codeOf(err error) (layer, etype, code uint8) {
	var c interface {
		TerminateCode() (layer, etype, code uint8)
	}
	if errors.As(err, &c) {
		return c.TerminateCode()
	}
	return 0xF, 0xF, 0xFF
}
