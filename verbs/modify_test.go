package verbs_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/ddp"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// A plainLLP is a stream without StreamMessage.
type plainLLP struct{ ddp.LLP }

// A silent LLP is a stream that may not be sent on.
type silent struct {
	t *testing.T
	ddp.LLP
}

func (s silent) StreamMessage(context.Context, []byte) error {
	s.t.Error("a stream message was sent, which cannot be taken back")
	return nil
}

// query is Query of a queue pair that exists.
func query(t testing.TB, qp *verbs.QP) verbs.QPAttributes {
	t.Helper()
	return must(qp.Query())(t)
}

// Each result of Modify QP, and what it was asked for then; a Modify that fails
// has changed nothing, however much of it could have been done.
//
// Claims: V-6.1.3-1 V-6.1.3-7 V-6.1.3-10 V-6.1.3-11 V-6.2.1.2-1 V-9.2.5.3-1 V-9.2.5.3-6 V-9.2.5.3-8 V-9.2.5.3-9 V-9.2.5.3-4 V-9.2.5.3-14 V-6.5-3 V-9.2.5.1-8
// Claims: V-10.2-1 V-6.2.2-1
// Claims: V-9.2.5.3-2 V-9.2.5.3-10 V-9.5.1.5-1 V-6.1.3-2 V-6.1.3-5 V-9.2.5.3-12
func TestModifyHasEachOfItsResultsAndThenChangesNothing(t *testing.T) {
	type q = verbs.QPModify
	limits := verbs.Limits{WRs: 64, IRD: 8, ORD: 8, TotalIRD: 20, TotalORD: 20, QPs: 20}
	closed := func() *mpa.Conn {
		x, _ := nettest.TCPPair(t, "tcp4")
		_ = x.Close()
		return newMPA(x)
	}
	halfOpen := func() *mpa.Conn {
		x, y := nettest.TCPPair(t, "tcp4")
		check(t, y.CloseWrite())
		t.Cleanup(func() { _ = x.Close(); _ = y.Close() })
		return newMPA(x)
	}
	pipe := func() *mpa.Conn { x, _ := iwarptest.Pipe(); return newMPA(x) }
	deaf := func() *mpa.Conn { x, y := iwarptest.Pipe(); _ = y.Reset(); return newMPA(x) }
	for _, tt := range []struct {
		name   string
		state  verbs.State // Idle, RTS or Error
		srq    bool
		next   verbs.State
		m      func() q
		result error
	}{
		{"an attribute on the way to Closing", verbs.RTS, false, verbs.Closing, func() q { return q{ORD: new(1)} }, verbs.ErrAttribute},
		{"an attribute on the way to Terminate", verbs.RTS, false, verbs.Terminate, func() q { return q{SendDepth: new(17)} }, verbs.ErrAttribute},
		{"an attribute on the way to Error", verbs.RTS, false, verbs.Error, func() q { return q{ORD: new(1)} }, verbs.ErrAttribute},
		{"an attribute from Idle to Error", verbs.Idle, false, verbs.Error, func() q { return q{IRD: new(1)} }, verbs.ErrAttribute},
		{"an attribute from Error to Idle", verbs.Error, false, verbs.Idle, func() q { return q{RecvDepth: new(17)} }, verbs.ErrAttribute},
		{"a limit to be armed on the way to Error", verbs.Idle, true, verbs.Error, func() q { return q{ArmRQLimit: true} }, verbs.ErrAttribute},

		{"a stream in RTS", verbs.RTS, false, verbs.RTS, func() q { return q{LLP: pipe()} }, verbs.ErrModifier},
		{"a stream to Idle", verbs.Idle, false, verbs.Idle, func() q { return q{LLP: pipe()} }, verbs.ErrModifier},
		{"a stream to Error", verbs.Idle, false, verbs.Error, func() q { return q{LLP: pipe()} }, verbs.ErrModifier},
		{"a stream message in RTS", verbs.RTS, false, verbs.RTS, func() q { return q{StreamMessage: []byte("x")} }, verbs.ErrModifier},
		{"terms in RTS", verbs.RTS, false, verbs.RTS, func() q { return q{Terms: &verbs.Terms{}} }, verbs.ErrModifier},
		{"terms and ORD", verbs.Idle, false, verbs.RTS, func() q { return q{LLP: pipe(), Terms: &verbs.Terms{}, ORD: new(1)} }, verbs.ErrModifier},
		{"a send queue of nothing", verbs.Idle, false, verbs.Idle, func() q { return q{SendDepth: new(0), ORD: new(1)} }, verbs.ErrModifier},
		{"a receive queue below nothing", verbs.RTS, false, verbs.RTS, func() q { return q{RecvDepth: new(-1), SendDepth: new(20)} }, verbs.ErrModifier},
		{"a receive queue beside the shared one", verbs.Idle, true, verbs.Idle, func() q { return q{RecvDepth: new(4), ORD: new(1)} }, verbs.ErrModifier},
		{"a QP RQ Limit without an S-RQ", verbs.Idle, false, verbs.Idle, func() q { return q{RQLimit: new(1), ORD: new(1)} }, verbs.ErrModifier},
		{"arming one", verbs.Idle, false, verbs.Idle, func() q { return q{ArmRQLimit: true} }, verbs.ErrModifier},

		{"too long a send queue", verbs.Idle, false, verbs.Idle, func() q { return q{SendDepth: new(65), ORD: new(1)} }, verbs.ErrWRMax},
		{"too long a receive queue", verbs.RTS, false, verbs.RTS, func() q { return q{RecvDepth: new(65), SendDepth: new(20)} }, verbs.ErrWRMax},
		{"too much ORD", verbs.Idle, false, verbs.Idle, func() q { return q{ORD: new(9), IRD: new(1)} }, verbs.ErrORD},
		{"too much ORD for the stream", verbs.Idle, false, verbs.RTS, func() q { return q{LLP: pipe(), Terms: &verbs.Terms{ORD: 9}} }, verbs.ErrORD},
		{"ORD below 0", verbs.RTS, false, verbs.RTS, func() q { return q{ORD: new(-1), SendDepth: new(20)} }, verbs.ErrORD},
		{"too much IRD", verbs.RTS, false, verbs.RTS, func() q { return q{IRD: new(9), ORD: new(1)} }, verbs.ErrIRD},
		{"too much ORD for the pool", verbs.Idle, false, verbs.Idle, func() q { return q{ORD: new(5), IRD: new(1)} }, verbs.ErrResources},
		{"too much IRD for the pool", verbs.RTS, false, verbs.RTS, func() q { return q{IRD: new(5), ORD: new(1)} }, verbs.ErrResources},
		{"too much IRD for the pool and a stream", verbs.Idle, false, verbs.RTS, func() q { return q{LLP: pipe(), IRD: new(5)} }, verbs.ErrResources},
		{"too short a send queue", verbs.Idle, false, verbs.Idle, func() q { return q{SendDepth: new(7), RecvDepth: new(30), ORD: new(1)} }, verbs.ErrShrink},
		{"too short a receive queue", verbs.Idle, false, verbs.Idle, func() q { return q{RecvDepth: new(4), SendDepth: new(30), IRD: new(1)} }, verbs.ErrShrink},
		{"too short a receive queue in RTS", verbs.RTS, false, verbs.RTS, func() q { return q{RecvDepth: new(4), SendDepth: new(30)} }, verbs.ErrShrink},
		{"a limit above the S-RQ", verbs.Idle, true, verbs.Idle, func() q { return q{RQLimit: new(17), ORD: new(1)} }, verbs.ErrRQLimit},
		{"a limit below 0", verbs.Idle, true, verbs.Idle, func() q { return q{RQLimit: new(-1), ORD: new(1)} }, verbs.ErrRQLimit},

		{"no stream", verbs.Idle, false, verbs.RTS, func() q { return q{ORD: new(1)} }, verbs.ErrLLP},
		{"a stream that was closed", verbs.Idle, false, verbs.RTS, func() q { return q{LLP: closed(), ORD: new(1)} }, verbs.ErrLLP},
		{"a stream that the peer has closed", verbs.Idle, false, verbs.RTS, func() q { return q{LLP: halfOpen(), ORD: new(1)} }, verbs.ErrLLP},
		{"a stream that takes no message", verbs.Idle, false, verbs.RTS, func() q {
			return q{LLP: plainLLP{pipe()}, StreamMessage: []byte("x"), ORD: new(1)}
		}, verbs.ErrLLP},
		{"a stream that is broken", verbs.Idle, false, verbs.RTS, func() q { return q{LLP: deaf(), StreamMessage: []byte("x"), ORD: new(1)} }, verbs.ErrLLP},
		{"a message that comes too soon", verbs.Idle, false, verbs.RTS, func() q {
			return q{LLP: silent{t, pipe()}, StreamMessage: []byte("x"), SendDepth: new(7)}
		}, verbs.ErrShrink},

		{"Idle to Closing", verbs.Idle, false, verbs.Closing, func() q { return q{} }, verbs.ErrState},
		{"RTS to Idle", verbs.RTS, false, verbs.Idle, func() q { return q{ORD: new(1)} }, verbs.ErrState},
		{"Error to RTS", verbs.Error, false, verbs.RTS, func() q { return q{LLP: pipe()} }, verbs.ErrState},
		{"Error to Closing", verbs.Error, false, verbs.Closing, func() q { return q{} }, verbs.ErrState},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSideOf(t, verbs.Config{Limits: limits}, verbs.QPConfig{IRD: 8, ORD: 8}) // of the pools 12 are left
			cfg := verbs.QPConfig{IRD: 4, ORD: 4}
			for range 2 { // and of those 4, for the one below
				_ = must(s.pd.CreateQP(verbs.QPConfig{SendCQ: s.sendCQ, RecvCQ: s.recvCQ, IRD: 4, ORD: 4}))(t)
			}
			if tt.srq {
				cfg.SRQ = must(s.pd.CreateSRQ(verbs.SRQConfig{WRs: 16}))(t)
			}
			s.qp = s.newQP(cfg)
			if tt.state == verbs.Idle {
				for range 8 {
					check(t, s.qp.PostSend(verbs.SendWR{Op: verbs.OpSend}))
				}
			}
			if !tt.srq && tt.state != verbs.Error {
				s.receives(0, 5, 8)
			}
			switch tt.state {
			case verbs.RTS:
				wires[0].connect(t, s.qp, newSide(t, reads).qp, cm.Params{})
			case verbs.Error:
				s.qp.Abort()
			}
			before, usage := query(t, s.qp), s.rnic.Usage()
			_, err := s.qp.Modify(tt.next, tt.m())
			wantError(t, err, tt.result)
			if after := query(t, s.qp); !reflect.DeepEqual(before, after) || usage != s.rnic.Usage() {
				t.Errorf("was %+v, %+v; is %+v, %+v", before, usage, after, s.rnic.Usage())
			}
			if at := s.qp.State(); at != tt.state {
				t.Errorf("the state is %v, expected %v", at, tt.state)
			}
		})
	}
}

// The results of every verb of a queue pair for handles that are no longer valid.
//
// Claims: V-6.1.4-1
func TestAQueuePairThatIsNoMoreHasTheResultOfThat(t *testing.T) {
	s := newSide(t, reads)
	verb := func() []error {
		_, q := s.qp.Query()
		_, m := s.qp.Modify(verbs.Idle, verbs.QPModify{})
		return []error{q, m, s.qp.Destroy(), s.qp.Fail(), s.qp.PostSend(verbs.SendWR{Op: verbs.OpSend}), s.qp.PostRecv(verbs.RecvWR{})}
	}
	check(t, s.qp.Destroy())
	for _, err := range verb() {
		wantError(t, err, verbs.ErrQP)
	}
	check(t, s.rnic.Close())
	for _, err := range verb() {
		wantError(t, err, verbs.ErrRNIC)
	}
}

// Attributes change in Idle, on the way to RTS and in RTS. Modify returns what Query
// does.
//
// Claims: V-6.1.3-3 V-6.1.3-6 V-6.1.3-8 V-6.2.1.1-1 V-6.2.2.1-1 V-6.5-7 V-9.2.5.3-3 V-9.2.5.3-8 V-6.5-1
// Claims: V-9.2.1.2-19 V-9.2.1.2-20 V-9.2.1.2-22 V-9.2.5.3-7 V-4-4
func TestAttributesAreWhatModifySays(t *testing.T) {
	s := newSideOf(t, verbs.Config{Limits: verbs.Limits{TotalIRD: 100, TotalORD: 100, QPs: 10}}, verbs.QPConfig{IRD: 4, ORD: 6})
	want := verbs.QPModified{SendDepth: 16, RecvDepth: 16, IRD: 4, ORD: 6}
	is := func(what string, got verbs.QPModified) {
		t.Helper()
		a := query(t, s.qp)
		if q := (verbs.QPModified{SendDepth: a.SendDepth, RecvDepth: a.RecvDepth, IRD: a.IRD, ORD: a.ORD}); got != want || q != want {
			t.Errorf("%s: Modify returns %+v, Query returns %+v, expected %+v", what, got, q, want)
		}
		if u := s.rnic.Usage(); u.IRD != want.IRD || u.ORD != want.ORD {
			t.Errorf("%s: %d and %d are taken from the pools", what, u.IRD, u.ORD)
		}
	}
	a := must(s.rnic.Query())(t)
	if !a.ModifyWRs || !a.ModifyIRD || !a.IncreaseORD || a.Limits.TotalIRD != 100 || a.Limits.TotalORD != 100 {
		t.Errorf("the RNIC says that it is otherwise: %+v", a)
	}
	is("nothing", must(s.qp.Modify(verbs.Idle, verbs.QPModify{}))(t))
	want.ORD, want.SendDepth = 2, 8
	is("less", must(s.qp.Modify(verbs.Idle, verbs.QPModify{ORD: new(2), SendDepth: new(8)}))(t))
	want.ORD, want.IRD, want.RecvDepth = 9, 7, 100
	is("more", must(s.qp.Modify(verbs.Idle, verbs.QPModify{ORD: new(9), IRD: new(7), RecvDepth: new(100)}))(t))
	x, y := iwarptest.Pipe()
	want.ORD, want.SendDepth = 3, 33
	is("to RTS", must(s.qp.Modify(verbs.RTS, verbs.QPModify{LLP: newMPA(x), ORD: new(3), SendDepth: new(33)}))(t))
	want.ORD, want.IRD, want.SendDepth = 1, 2, 5
	is("less in RTS", must(s.qp.Modify(verbs.RTS, verbs.QPModify{ORD: new(1), IRD: new(2), SendDepth: new(5)}))(t))
	want.ORD, want.IRD, want.RecvDepth = 12, 13, 7
	is("more in RTS", must(s.qp.Modify(verbs.RTS, verbs.QPModify{ORD: new(12), IRD: new(13), RecvDepth: new(7)}))(t))
	s.qp.Abort()
	_ = y.Close()
	reach(t, s.qp, verbs.Error)
	is("in Error", want)
	check(t, s.qp.Destroy())
	if u := s.rnic.Usage(); u.IRD != 0 || u.ORD != 0 {
		t.Errorf("%d and %d are still taken from the pools", u.IRD, u.ORD)
	}
}

// The terms that start-up negotiates hold for one stream. For the next one the queue pair
// has its own again.
func TestTermsAreOfTheStream(t *testing.T) {
	s := newSide(t, verbs.QPConfig{IRD: 4, ORD: 6})
	x, _ := iwarptest.Pipe()
	must(s.qp.Modify(verbs.RTS, verbs.QPModify{LLP: newMPA(x), Terms: &verbs.Terms{IRD: 2, ORD: 9}}))(t)
	if a := query(t, s.qp); a.IRD != 2 || a.ORD != 9 {
		t.Errorf("IRD %d and ORD %d, expected 2 and 9", a.IRD, a.ORD)
	}
	s.qp.Abort()
	reach(t, s.qp, verbs.Error)
	for s.qp.Reset() != nil {
	}
	if a := query(t, s.qp); a.IRD != 4 || a.ORD != 9 { // 9 was allocated
		t.Errorf("IRD %d and ORD %d, expected 4 and 9", a.IRD, a.ORD)
	}
}

// The queues change their size while they are used. Only posting notices it.
//
// Claims: V-6.1.3-8 V-6.1.3-9
func TestQueuesAreResizedUnderWork(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		const messages = 3000
		cfg := verbs.QPConfig{SendDepth: 8, RecvDepth: 8, ORD: 4, IRD: 8, PauseOnEmptyRQ: true}
		a, b := linked(t, w, cfg, cfg)
		stop := make(chan struct{})
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			rng := rand.New(rand.NewPCG(1, 2))
			for {
				select {
				case <-stop:
					return
				default:
				}
				for _, qp := range []*verbs.QP{a.qp, b.qp} {
					m := verbs.QPModify{SendDepth: new(1 + rng.IntN(40)), RecvDepth: new(1 + rng.IntN(40)), ORD: new(1 + rng.IntN(8))}
					if _, err := qp.Modify(verbs.RTS, m); err != nil && !errors.Is(err, verbs.ErrShrink) {
						t.Errorf("Modify: %v", err)
					}
				}
			}
		}()
		defer func() {
			close(stop)
			<-stopped
		}()
		receiver := make(chan struct{})
		go func() {
			defer close(receiver)
			posted := uint64(0)
			for done := uint64(0); done < messages; {
				for posted < messages && b.qp.PostRecv(verbs.RecvWR{ID: posted, SGL: []verbs.SGE{b.mr.SGE(int(posted%100)*8, 8)}}) == nil {
					posted++
				}
				for _, wc := range take(t, b.recvCQ, 1) {
					if wc.ID != done || wc.Status != verbs.Success {
						t.Errorf("receive %d: %v, expected %d", wc.ID, wc.Status, done)
					}
					done++
				}
			}
		}()
		done, posted := uint64(0), uint64(0)
		for done < 2*messages {
			for posted < 2*messages {
				wr := a.read(posted, b, 4096, 64)
				if posted%2 == 0 {
					wr = a.send(posted, 0, 8)
				}
				if err := a.qp.PostSend(wr); err != nil {
					wantError(t, err, verbs.ErrFull)
					break
				}
				posted++
			}
			for _, wc := range take(t, a.sendCQ, 1) {
				if wc.ID != done || wc.Status != verbs.Success {
					t.Fatalf("request %d: %v, expected %d; %v", wc.ID, wc.Status, done, a.qp.Err())
				}
				done++
			}
		}
		nettest.Await(t, receiver)
		a.wantEvents()
		b.wantEvents()
	})
}

// Changes of ORD and IRD take effect at once: no more Reads are outstanding than ORD,
// waiting ones go out when it grows, and the peer may have as many as IRD.
//
// Claims: V-6.5-4 V-6.5-5 V-6.5-7 V-6.6.1.1-3 V-13.1-5 V-6.2.2.1-1
func TestORDAndIRDCountAsTheyChange(t *testing.T) {
	bubble(t, reads, verbs.QPConfig{IRD: 1, ORD: 4}, func(t *testing.T, s *table) {
		must(s.b.qp.Modify(verbs.RTS, verbs.QPModify{IRD: new(4)}))(t)
		must(s.a.qp.Modify(verbs.RTS, verbs.QPModify{ORD: new(2)}))(t)
		s.y.Hold()
		before := s.x.Written()
		sent := func(n uint64) {
			t.Helper()
			quiesce()
			if got := s.x.Written() - before; got != n*fpdu(readRequest) {
				t.Errorf("%d octets have been sent, expected %d requests of %d", got, n, fpdu(readRequest))
			}
		}
		for i := range uint64(6) {
			s.a.post(s.a.read(i, s.b, 0, 8))
		}
		sent(2)
		must(s.a.qp.Modify(verbs.RTS, verbs.QPModify{ORD: new(4)}))(t)
		sent(4)
		must(s.a.qp.Modify(verbs.RTS, verbs.QPModify{ORD: new(1)}))(t)
		sent(4)
		s.y.Resume()
		sent(6)
		for i := range uint64(6) {
			wantDone(t, s.a.sendCQ, done{i, verbs.Success})
		}
	})
}

// Requests whose completions were not polled are outstanding: a queue cannot become shorter
// than their number (Verbs §6.1.3).
//
// Claims: V-6.1.3-10
func TestAQueueDoesNotShrinkBelowWhatWasNotPolled(t *testing.T) {
	bubble(t, reads, reads, func(t *testing.T, s *table) {
		a := s.a
		for i := range uint64(6) {
			a.post(a.write(i, s.b, 0, 8))
		}
		quiesce()
		shrink := verbs.QPModify{SendDepth: new(5)}
		_, err := a.qp.Modify(verbs.RTS, shrink)
		wantError(t, err, verbs.ErrShrink)
		wantDone(t, a.sendCQ, done{0, verbs.Success})
		must(a.qp.Modify(verbs.RTS, shrink))(t)
		wantError(t, a.qp.PostSend(a.write(7, s.b, 0, 8)), verbs.ErrFull)
		for i := uint64(1); i < 6; i++ {
			wantDone(t, a.sendCQ, done{i, verbs.Success})
		}

		b := s.b
		b.receives(0, 6, 8)
		for i := range uint64(6) {
			a.post(a.send(i, 0, 8))
			wantDone(t, a.sendCQ, done{i, verbs.Success})
		}
		quiesce()
		shrink = verbs.QPModify{RecvDepth: new(5)}
		_, err = b.qp.Modify(verbs.RTS, shrink)
		wantError(t, err, verbs.ErrShrink)
		wantDone(t, b.recvCQ, done{0, verbs.Success})
		must(b.qp.Modify(verbs.RTS, shrink))(t)
		wantError(t, b.qp.PostRecv(verbs.RecvWR{}), verbs.ErrFull)
	})
}

// The stream message is sent before everything else, even by a side that may send at once
// and has requests posted.
//
// Claims: V-6.2.1.2-3
func TestAStreamMessageGoesBeforeWhatIsPosted(t *testing.T) {
	overMPA(t, func(t *testing.T, w wire) {
		a := newSide(t, reads)
		x, y := w.pair(t)
		a.post(a.send(1, 0, 8))
		p := mpa.Params{Revision: mpa.Revision2, CRC: true, Initiator: true}
		must(a.qp.Modify(verbs.RTS, verbs.QPModify{LLP: mpa.NewConn(x, p), StreamMessage: []byte("START\n")}))(t)
		got := make([]byte, 8)
		if _, err := io.ReadFull(y, got); err != nil || string(got) != "START\n\x00\x1a" {
			t.Errorf("the peer reads %q, %v: expected the message and an FPDU of 26 octets", got, err)
		}
		_ = y.Close() // it may be closed
		reach(t, a.qp, verbs.Error)
	})
}

// The stream message is sent first. What the peer sends meanwhile is iWARP already, and no
// octet of it is lost.
//
// Claims: V-6.2.1.2-3 V-6.2.1.2-6 V-6.6.1-1 V-6.6.1-3 V-6.2.1.2-5 V-13.1-2 V-13.1-3 V-13.1-4 V-13.1-8 V-6.2.1.2-4
// Claims: V-6.6.1.1-1 V-6.6.1.2-1
// Claims: R-6.1-1
func TestAStreamMessageGoesBeforeIWARP(t *testing.T) {
	overMPA(t, func(t *testing.T, w wire) {
		for _, hasty := range []bool{false, true} {
			a, b := newSide(t, reads), newSide(t, reads)
			x, y := w.pair(t)
			b.receives(1, 1, 8)
			a.receives(1, 1, 8)
			copy(a.buf[100:], "from a")
			copy(b.buf[100:], "from b")
			b.post(b.send(2, 100, 8))
			a.post(a.send(2, 100, 8)) // goes after b's first FPDU
			passive := func() {
				if !hasty {
					got := make([]byte, 6)
					if _, err := io.ReadFull(y, got); err != nil || string(got) != "START\n" {
						t.Errorf("b reads %q, %v", got, err)
					}
				}
				p := mpa.Params{Revision: mpa.Revision2, CRC: true, Initiator: true}
				must(b.qp.Modify(verbs.RTS, verbs.QPModify{LLP: mpa.NewConn(y, p)}))(t)
			}
			if hasty { // both begin at once, without a message (Verbs §13.1)
				passive()
			}
			p := verbs.QPModify{LLP: newMPA(x)}
			if !hasty {
				p.StreamMessage = []byte("START\n")
			}
			must(a.qp.Modify(verbs.RTS, p))(t)
			if !hasty {
				passive()
			}
			for _, s := range []*side{a, b} {
				wantDone(t, s.sendCQ, done{2, verbs.Success})
				wantDone(t, s.recvCQ, done{1, verbs.Success})
			}
			if string(a.buf[:6]) != "from b" || string(b.buf[:6]) != "from a" {
				t.Errorf("a got %q, b %q", a.buf[:6], b.buf[:6])
			}
			check(t, a.qp.Close(t.Context()))
		}
	})
}

// A stream message that the peer does not read fails after CloseTimeout. The queue pair is
// Idle all the time, and can be queried and destroyed.
func TestAStreamMessageTakesNoLongerThanItMay(t *testing.T) {
	for _, destroy := range []bool{false, true} {
		bubbleOf(t, func(t *testing.T) {
			s := newSide(t, reads)
			x, y := iwarptest.BufferedPipe(1)
			failed := make(chan error, 1)
			go func() {
				_, err := s.qp.Modify(verbs.RTS, verbs.QPModify{LLP: newMPA(x), StreamMessage: []byte("is there anybody?")})
				failed <- err
			}()
			quiesce()
			if a := query(t, s.qp); a.State != verbs.Idle || a.LLP != nil {
				t.Errorf("it is %v over %v meanwhile", a.State, a.LLP)
			}
			for _, next := range []verbs.State{verbs.Idle, verbs.RTS} {
				_, err := s.qp.Modify(next, verbs.QPModify{})
				wantError(t, err, verbs.ErrState)
			}
			if destroy {
				check(t, s.qp.Destroy())
				b := make([]byte, 17)
				must(io.ReadFull(y, b))(t)
				wantError(t, <-failed, verbs.ErrQP)
				return
			}
			wantError(t, <-failed, verbs.ErrLLP) // in time
			if at := s.qp.State(); at != verbs.Idle {
				t.Errorf("it is %v", at)
			}
		})
	}
}
