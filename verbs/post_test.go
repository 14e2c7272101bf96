package verbs_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/verbs"
)

// A refused request has no effect: the requests before and after it are executed as if it
// had not been posted.
//
// Claims: V-8.1.1-1 V-8.1.3.3-1 V-8.2.1-2 V-8.3.1-1 V-9.3.1.1-7
// Claims: V-9.3.1.1-4 V-9.3.1.1-21 V-9.3.1.2-3 V-9.5.1.7-1 V-9.3.1.1-17 V-9.3.1.1-18
func TestImmediateErrorsTellApartAndChangeNothing(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		a, b := newSide(t, verbs.QPConfig{SendSGEs: 2, RecvSGEs: 2, IRD: 4, ORD: 4}), newSide(t, reads)
		sge := a.mr.SGE(0, 8)
		for _, tt := range []struct {
			name string
			wr   verbs.SendWR
			want error
		}{
			{"no operation", verbs.SendWR{}, verbs.ErrOp},
			{"a receive", verbs.SendWR{Op: verbs.OpRecv}, verbs.ErrOp},
			{"unknown operation", verbs.SendWR{Op: 200}, verbs.ErrOp},
			{"too many elements", verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{sge, sge, sge}}, verbs.ErrSGLLength},
			{"Read without a sink", verbs.SendWR{Op: verbs.OpRead}, verbs.ErrSGLFormat},
			{"Read into two sinks", verbs.SendWR{Op: verbs.OpReadInvalidate, SGL: []verbs.SGE{sge, sge}}, verbs.ErrSGLFormat},
			{"atomic of 4 octets", verbs.SendWR{Op: verbs.OpFetchAdd, SGL: []verbs.SGE{a.mr.SGE(0, 4)}}, verbs.ErrSGLFormat},
			{"atomic without a sink", verbs.SendWR{Op: verbs.OpCmpSwap}, verbs.ErrSGLFormat},
			{"Send with Invalidate of nothing", verbs.SendWR{Op: verbs.OpSendInvalidate}, verbs.ErrModifier},
			{"the same, solicited", verbs.SendWR{Op: verbs.OpSendSEInvalidate, Invalidate: 0xFF}, verbs.ErrModifier},
			{"invalidation of nothing", verbs.SendWR{Op: verbs.OpInvalidate}, verbs.ErrModifier},
		} {
			n, err := a.qp.PostSends([]verbs.SendWR{a.write(1, b, 0, 8), tt.wr, a.write(2, b, 0, 8)})
			wantError(t, err, tt.want)
			if n != 1 {
				t.Errorf("%s: %d were posted, expected 1", tt.name, n)
			}
			wantError(t, a.qp.PostSend(tt.wr), tt.want)
			check(t, a.qp.PostSend(a.write(3, b, 0, 8)))
			if a.qp.State() == verbs.Idle {
				// Held until now.
				w.connect(t, a.qp, b.qp, cm.Params{})
			}
			wantDone(t, a.sendCQ, done{1, verbs.Success}, done{3, verbs.Success})
		}

		n, err := a.qp.PostRecvs([]verbs.RecvWR{{ID: 1}, {SGL: []verbs.SGE{sge, sge, sge}}, {ID: 2}})
		wantError(t, err, verbs.ErrSGLLength)
		if n != 1 {
			t.Errorf("%d receives were posted, expected 1", n)
		}
		plain := must(a.pd.CreateQP(verbs.QPConfig{SendCQ: a.sendCQ, RecvCQ: a.recvCQ}))(t)
		for _, op := range []verbs.Op{verbs.OpImmediate, verbs.OpImmediateSE, verbs.OpFetchAdd, verbs.OpCmpSwap} {
			wr := verbs.SendWR{Op: op}
			if op == verbs.OpFetchAdd || op == verbs.OpCmpSwap {
				wr.SGL = []verbs.SGE{sge}
			}
			wantError(t, plain.PostSend(wr), verbs.ErrOp)
		}
		if s := a.qp.State(); s != verbs.RTS {
			t.Errorf("the queue pair is %v", s)
		}
	})
}

// Verbs §8.1.3.1: a signaled request's slot is free when its completion has been
// polled, an unsignaled one's when it is done and all before it are free.
//
// Claims: V-8.1.3.1-4 V-8.2.1-1 V-8.2.1-4 V-8.2.1-5 V-9.3.1.1-23
// Claims: V-4-2 V-8.1.3.1-3
func TestSlotsOfTheSendQueueAreFreedAsTheVerbsSay(t *testing.T) {
	bubble(t, verbs.QPConfig{SendDepth: 4}, verbs.QPConfig{}, func(t *testing.T, s *table) {
		post := func(want error, signaled ...bool) {
			t.Helper()
			for _, is := range signaled {
				wr := s.a.write(7, s.b, 0, 8)
				if !is {
					wr.Flags = 0
				}
				quiesce()
				err := s.a.qp.PostSend(wr)
				if want != nil {
					wantError(t, err, want)
				} else if err != nil {
					t.Error(err)
				}
			}
		}
		post(nil, false, false, false, false, false, false) // each is done and gone
		post(nil, true, false, true, false)
		post(verbs.ErrFull, true, false)
		wantDone(t, s.a.sendCQ, done{7, verbs.Success}) // and the unsignaled one behind it
		post(nil, false, false)
		post(verbs.ErrFull, true)
		wantDone(t, s.a.sendCQ, done{7, verbs.Success}) // and the three behind it
		post(nil, true, true, true, true)
		post(verbs.ErrFull, false)
		if n := s.a.sendCQ.Poll(make([]verbs.WC, 10)); n != 4 {
			t.Fatalf("%d completions, expected 4", n)
		}
		post(nil, true, true, true, true)
		s.a.sendCQ.Poll(make([]verbs.WC, 10))
	})
}

// Claims: V-8.2.1-1 V-8.2.1-4 V-8.2.1-5
// Claims: V-4-2
func TestSlotsOfTheReceiveQueueAreFreedByPolling(t *testing.T) {
	bubble(t, verbs.QPConfig{}, verbs.QPConfig{RecvDepth: 2}, func(t *testing.T, s *table) {
		s.b.receives(1, 2, 8)
		wantError(t, s.b.qp.PostRecv(verbs.RecvWR{}), verbs.ErrFull)
		s.a.post(s.a.send(1, 0, 8))
		quiesce()
		wantError(t, s.b.qp.PostRecv(verbs.RecvWR{}), verbs.ErrFull)
		wantDone(t, s.b.recvCQ, done{1, verbs.Success})
		s.b.receives(3, 1, 8)
		wantError(t, s.b.qp.PostRecv(verbs.RecvWR{}), verbs.ErrFull)
	})
}

// Verbs §8.1.3.1: the completion of a later request implies that the unsignaled requests
// before it have succeeded.
//
// Claims: V-8.1.3.1-1 V-8.1.3.1-2
// Claims: V-5.3-2
// Claims: V-9.3.1.1-3 V-8.1.3.1-3
func TestUnsignaledRequestsHaveNoCompletionUnlessTheyFail(t *testing.T) {
	bubble(t, reads, reads, func(t *testing.T, s *table) {
		plain := s.a.write(1, s.b, 0, 8)
		plain.Flags = 0
		bad := plain
		bad.ID, bad.SGL = 3, []verbs.SGE{{STag: s.a.mr.STag() ^ 1, Length: 8}}
		late := plain
		late.ID = 4
		s.a.post(plain, s.a.write(2, s.b, 0, 8), plain, bad, late)
		wantDone(t, s.a.sendCQ, done{2, verbs.Success}, done{3, verbs.InvalidSTag}, done{4, verbs.Flushed})
	})
}

// PostSend copies the request: only the memory that it names must be left alone.
//
// Claims: V-6.2.2-2 V-13.1-3 V-13.1-4 V-6.6.1.1-2
func TestPostingCopiesTheRequest(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		a, b := newSide(t, reads), newSide(t, reads)
		copy(a.buf, "the octets that were meant")
		recv := []verbs.RecvWR{{ID: 5, SGL: []verbs.SGE{b.mr.SGE(0, 10), b.mr.SGE(100, 20)}}}
		_, err := b.qp.PostRecvs(recv)
		check(t, err)
		recv[0].ID, recv[0].SGL[0] = 6, verbs.SGE{STag: 1}
		wrs := []verbs.SendWR{{ID: 1, Op: verbs.OpSend, Flags: verbs.Signaled, SGL: []verbs.SGE{a.mr.SGE(0, 11), {}, a.mr.SGE(11, 15)}}}
		_, err = a.qp.PostSends(wrs)
		check(t, err)
		wrs[0].ID, wrs[0].Op, wrs[0].SGL[0], wrs[0].SGL[2] = 2, verbs.OpRead, verbs.SGE{STag: 1}, verbs.SGE{STag: 2}
		w.connect(t, a.qp, b.qp, cm.Params{})
		wantDone(t, a.sendCQ, done{1, verbs.Success})
		wantDone(t, b.recvCQ, done{5, verbs.Success})
		if got := string(b.buf[:10]) + string(b.buf[100:116]); got != "the octets that were meant" {
			t.Errorf("received %q", got)
		}
	})
}

// An SGL gathers and scatters octet by octet; elements of no octets name
// nothing, whatever their STag.
//
// Claims: V-8.1.2.1-5 V-8.1.3.2-4 V-9.3.1.1-6
// Claims: V-9.3.1.2-2 V-4-7
func TestListsAreGatheredAndScattered(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		cfg := verbs.QPConfig{SendSGEs: 32, RecvSGEs: 32}
		a, b := linked(t, w, cfg, cfg)
		for i := range a.buf {
			a.buf[i] = byte(i * 13 / 7)
		}
		var send, recv []verbs.SGE
		var sent, places []byte
		for i := range 32 {
			n := []int{1, 0, 5000, 17, 4096, 0, 70000, 2}[i%8]
			e := a.mr.SGE(i*1000+i, n)
			if n == 0 {
				e = verbs.SGE{STag: 0xDEAD, TO: 1<<64 - 1}
			}
			send = append(send, e)
			sent = append(sent, a.buf[i*1000+i:i*1000+i+n]...)
		}
		left := len(sent)
		for i := range 32 {
			n := min(left, len(sent)/31)
			recv = append(recv, b.mr.SGE(i*30000, n))
			left -= n
		}
		for _, op := range []verbs.Op{verbs.OpSend, verbs.OpWrite} {
			clear(b.buf)
			if op == verbs.OpSend {
				check(t, b.qp.PostRecv(verbs.RecvWR{ID: 9, SGL: recv}))
			}
			a.post(verbs.SendWR{ID: 1, Op: op, Flags: verbs.Signaled, SGL: send, Remote: b.mr.Remote(0)})
			wantDone(t, a.sendCQ, done{1, verbs.Success})
			places = places[:0]
			if op == verbs.OpSend {
				if wc := wantDone(t, b.recvCQ, done{9, verbs.Success}); int(wc[0].Bytes) != len(sent) {
					t.Errorf("received %d octets, expected %d", wc[0].Bytes, len(sent))
				}
				for i, e := range recv {
					places = append(places, b.buf[i*30000:i*30000+int(e.Length)]...)
				}
			} else {
				check(t, b.qp.PostRecv(verbs.RecvWR{ID: 9}))
				a.post(verbs.SendWR{ID: 2, Op: verbs.OpSend, Flags: verbs.Signaled})
				wantDone(t, b.recvCQ, done{9, verbs.Success}) // so the Write is placed
				wantDone(t, a.sendCQ, done{2, verbs.Success})
				places = append(places, b.buf[:len(sent)]...)
			}
			if !bytes.Equal(places, sent) {
				t.Errorf("%v: other octets arrived", op)
			}
		}
	})
}

// Claims: V-8.1.3.2-3
// Claims: V-9.5.2-25 V-8.1.2.1-4
// Claims: R-1.1-1 R-1.1-3
func TestAMessageLongerThanCanBeIsRefused(t *testing.T) {
	bubble(t, verbs.QPConfig{}, verbs.QPConfig{}, func(t *testing.T, s *table) {
		sge := verbs.SGE{STag: s.a.mr.STag(), Length: 1 << 31}
		s.a.post(verbs.SendWR{ID: 1, Op: verbs.OpWrite, SGL: []verbs.SGE{sge, sge}})
		wantDone(t, s.a.sendCQ, done{1, verbs.InvalidLength})
	})
}

// A length that no element can have does not become a small one.
func TestAnElementOfAnImpossibleLengthIsRefused(t *testing.T) {
	lengths := []int{-1, math.MinInt}
	if math.MaxInt > math.MaxUint32 {
		n := math.MaxInt32 // not a constant, which would not fit everywhere
		lengths = append(lengths, 2*(n+1), 2*(n+1)+8, math.MaxInt)
	}
	for _, n := range lengths {
		bubble(t, verbs.QPConfig{}, verbs.QPConfig{}, func(t *testing.T, s *table) {
			e := s.a.region(0, 16, verbs.LocalRead).SGE(0, n)
			if e.Length != math.MaxUint32 {
				t.Errorf("SGE(0, %d) is of %d octets", n, e.Length)
			}
			s.a.post(verbs.SendWR{ID: 1, Op: verbs.OpSend, SGL: []verbs.SGE{e}})
			wantDone(t, s.a.sendCQ, done{1, verbs.BaseBounds})
		})
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	s := newSide(t, verbs.QPConfig{SendDepth: 1})
	check(t, s.qp.PostSend(verbs.SendWR{Op: verbs.OpSend}))
	err := s.qp.PostSend(verbs.SendWR{Op: verbs.OpSend})
	if want := "verbs: post to SQ: too many work requests posted: 1 are outstanding; poll"; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%q does not begin with %q", err, want)
	}
	if got := verbs.Flushed.Err(); got.Error() != "work request ended: flushed" || verbs.Success.Err() != nil {
		t.Errorf("%v, %v", got, verbs.Success.Err())
	}
}
