package verbs_test

import (
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// busy has a peer access remote memory until its stream ends, with one request of n octets
// after the other.
func (s *side) busy(op verbs.Op, remote func() verbs.Remote, n int) (ended <-chan struct{}, count *atomic.Int32) {
	over := make(chan struct{})
	count = new(atomic.Int32)
	go func() {
		defer close(over)
		var wcs [16]verbs.WC
		for {
			wr := verbs.SendWR{Op: op, Flags: verbs.Signaled, SGL: []verbs.SGE{s.mr.SGE(0, n)}, Remote: remote()}
			for s.qp.PostSend(wr) != nil {
				if s.sendCQ.Wait(s.t.Context()) != nil {
					return
				}
				for _, wc := range wcs[:s.sendCQ.Poll(wcs[:])] {
					if wc.Status != verbs.Success {
						return
					}
					count.Add(1)
				}
			}
		}
	}()
	return over, count
}

// wantMine fills memory that no peer can access any more. The race detector sees any
// access of the stack to it.
func wantMine(mine []byte) {
	for i := range mine {
		mine[i] = 0xA5
	}
}

// untouched fails the test if an octet has changed since wantMine.
func untouched(t *testing.T, mine []byte) {
	t.Helper()
	for i, v := range mine {
		if v != 0xA5 {
			t.Fatalf("octet %d was written after it had been taken back", i)
		}
	}
}

// A window is invalidated while a peer uses it at full speed. After the invalidation has
// completed, or Deallocate has returned, no access happens.
//
// Claims: V-7.10.4.1-1 V-9.2.6.4-3 V-7.9-2 V-10.1.2-3
func TestTakingAWindowBackEndsAllUseOfTheMemory(t *testing.T) {
	const size = 16 << 10
	for _, tt := range []struct {
		name string
		take func(t *testing.T, b *side, mw *verbs.MW)
	}{
		{"Invalidate", func(t *testing.T, b *side, mw *verbs.MW) {
			b.post(inval(5, mw.STag()))
			for wc := range b.completions(1) {
				if wc.Status != verbs.Success {
					t.Errorf("the invalidation: %v", wc.Status)
				}
			}
		}},
		{"Deallocate", func(t *testing.T, b *side, mw *verbs.MW) { check(t, mw.Deallocate()) }},
	} {
		for _, op := range []verbs.Op{verbs.OpWrite, verbs.OpRead} {
			t.Run(tt.name+" under "+op.String(), func(t *testing.T) {
				overWires(t, func(t *testing.T, w wire) {
					for range 4 {
						a, b := newSide(t, able), newSide(t, able)
						w.connect(t, a.qp, b.qp, cm.Params{})
						a.post(a.write(0, b, 0, 0)) // so that the responder may send
						wantDone(t, a.sendCQ, done{0, verbs.Success})
						mine := make([]byte, size)
						mr := must(b.pd.Register(mine, bindable))(t)
						mw := b.window()
						bd := mw.Binding(mr, 0, size, verbs.RemoteRead|verbs.RemoteWrite)
						b.post(bind(1, bd))
						wantDone(t, b.sendCQ, done{1, verbs.Success})
						ended, count := a.busy(op, func() verbs.Remote { return verbs.Remote{STag: bd.Window} }, size)
						after := rand.Int32N(60)
						nettest.Until(t, func() bool { return count.Load() >= after })
						tt.take(t, b, mw)
						wantMine(mine)
						nettest.Await(t, ended)
						reach(t, b.qp, verbs.Error)
						untouched(t, mine)
						check(t, mr.Deallocate())
						check(t, a.rnic.Close())
						check(t, b.rnic.Close())
					}
				})
			})
		}
	}
}

// completions are the next n of the side's send queue.
func (s *side) completions(n int) func(yield func(verbs.WC) bool) {
	return func(yield func(verbs.WC) bool) {
		for _, wc := range take(s.t, s.sendCQ, n) {
			if !yield(wc) {
				return
			}
		}
	}
}

// A region is reregistered from one buffer to another and back while a peer accesses it.
// Each access uses the current buffer, or fails and ends the stream.
//
// Claims: V-7.3.2.3-6
func TestReregisteringUnderAPeerLeavesTheOldMemoryAlone(t *testing.T) {
	const size = 8 << 10
	for _, op := range []verbs.Op{verbs.OpWrite, verbs.OpRead} {
		t.Run(op.String(), func(t *testing.T) {
			overWires(t, func(t *testing.T, w wire) {
				for range 6 {
					a, b := newSide(t, able), newSide(t, able)
					bufs := [2][]byte{make([]byte, size), make([]byte, size)}
					mr := must(b.pd.Register(bufs[0], allRights))(t)
					w.connect(t, a.qp, b.qp, cm.Params{})
					ended, count := a.busy(op, func() verbs.Remote { return mr.Remote(0) }, size)
					after := rand.Int32N(20)
					nettest.Until(t, func() bool { return count.Load() >= after })
					rounds := 0
					for alive := true; alive && rounds < 200; rounds++ {
						check(t, mr.Reregister(b.pd, verbs.MRConfig{Buf: bufs[(rounds+1)%2], Access: allRights}))
						wantMine(bufs[rounds%2])
						runtime.Gosched()
						untouched(t, bufs[rounds%2])
						select {
						case <-ended:
							alive = false
						default:
						}
					}
					check(t, mr.Deallocate())
					nettest.Await(t, ended)
					reach(t, b.qp, verbs.Error)
					for _, e := range b.recorded() {
						switch e.ID {
						case verbs.EventProtectionSTag, verbs.EventIRRQSTag, verbs.EventTerminateReceived, verbs.EventLLPLost, verbs.EventLLPReset:
						default:
							t.Errorf("after %d rounds: event %v, %v", rounds, e.ID, e.Err)
						}
					}
					check(t, a.rnic.Close())
					check(t, b.rnic.Close())
				}
			})
		})
	}
}

// recorded are the events so far.
func (s *side) recorded() []verbs.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]verbs.Event(nil), s.events...)
}

// Windows are bound and invalidated with each message, as a server does it: the peer
// writes through the window that was advertised to it and invalidates it. This happens
// thousands of times, with the memory of each message fast-registered.
func TestWindowsAndRegionsPerMessage(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		const rounds, size = 300, 2000
		a, b := linked(t, w, able, able)
		lent := b.region(0, len(b.buf), bindable)
		mw, mr := b.window(), must(b.pd.AllocMR(1, true))(t)
		a.post(a.write(0, b, 0, 0)) // so that the responder may send
		wantDone(t, a.sendCQ, done{0, verbs.Success})
		for round := range uint64(rounds) {
			var stag memory.STag
			var to uint64
			off := int(round) * 100
			if round%2 == 0 {
				bd := mw.Binding(lent, uint64(off), size, verbs.RemoteWrite)
				stag, to = bd.Window, bd.VA
				b.post(bind(1, bd))
			} else {
				f := mr.FastRegister(b.buf[off:off+size], verbs.LocalRead|verbs.LocalWrite|verbs.RemoteWrite)
				stag = f.STag
				b.post(fast(1, f))
			}
			wantDone(t, b.sendCQ, done{1, verbs.Success})
			b.receives(2, 1, 0)
			for i := range a.buf[:size] {
				a.buf[i] = byte(int(round) + i)
			}
			a.post(verbs.SendWR{Op: verbs.OpWrite, SGL: []verbs.SGE{a.mr.SGE(0, size)}, Remote: verbs.Remote{STag: stag, TO: to}},
				verbs.SendWR{ID: 3, Op: verbs.OpSendInvalidate, Flags: verbs.Signaled, Invalidate: stag})
			wc := wantDone(t, b.recvCQ, done{2, verbs.Success})
			if !wc[0].HasInvalidated || wc[0].Invalidated != stag || mw.Valid() || mr.Valid() {
				t.Fatalf("round %d: %v was invalidated, expected %v", round, wc[0].Invalidated, stag)
			}
			wantDone(t, a.sendCQ, done{3, verbs.Success})
			for i, v := range b.buf[off : off+size] {
				if v != byte(int(round)+i) {
					t.Fatalf("round %d: octet %d is another", round, i)
				}
			}
		}
	})
}
