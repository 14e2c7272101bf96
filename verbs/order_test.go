package verbs_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/verbs"
)

// A table is two connected sides in a bubble, where "nothing happens" can be
// seen: what a and b send can be held up at x and y.
type table struct {
	a, b *side
	x, y *iwarptest.Conn
}

// bubble runs f with a table in a bubble of its own.
func bubble(t *testing.T, ca, cb verbs.QPConfig, f func(t *testing.T, s *table)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &table{a: newSide(t, ca), b: newSide(t, cb)}
		s.x, s.y = iwarptest.Pipe()
		join(t, s.a.qp, s.b.qp, s.x, s.y, cm.Params{})
		synctest.Wait()
		f(t, s)
		synctest.Wait()
	})
}

// octets of an FPDU with a ULPDU of n octets (RFC 5044 §4.1).
func fpdu(n int) uint64 { return uint64(2+n+3)&^3 + 4 }

const (
	readRequest   = 18 + 28 // octets of the ULPDU
	atomicRequest = 18 + 52
)

// Later requests are sent while a Read is outstanding, and complete after it.
//
// Claims: R-5.5-18 R-5.5-22 X-5.4-2 X-5.4-9
// Claims: V-8.2.2-2
// Claims: X-5.4-1
func TestARequestCompletesAfterAllBeforeIt(t *testing.T) {
	for _, first := range []verbs.Op{verbs.OpRead, verbs.OpFetchAdd, verbs.OpCmpSwap} {
		t.Run(first.String(), func(t *testing.T) {
			bubble(t, reads, reads, func(t *testing.T, s *table) {
				s.b.receives(10, 1, 100)
				copy(s.a.buf[1000:], "written")
				s.y.Hold() // the answer
				ask := s.a.read(1, s.b, 0, 8)
				ask.Op = first
				s.a.post(ask, s.a.write(2, s.b, 1000, 7), s.a.send(3, 1000, 7))
				synctest.Wait()
				wantNone(t, s.a.sendCQ)
				wantDone(t, s.b.recvCQ, done{10, verbs.Success})
				if got := string(s.b.buf[1000:1007]); got != "written" {
					t.Errorf("the Write behind it placed %q", got)
				}
				s.y.Resume()
				wantDone(t, s.a.sendCQ, done{1, verbs.Success}, done{2, verbs.Success}, done{3, verbs.Success})
			})
		})
	}
}

// Verbs §8.2.2.2.
//
// Claims: R-5.5-15
// Claims: V-8.2.2.2-1
// Claims: V-9.3.1.1-5 V-9.3.1.1-17 V-8.2.2.2-3
// Claims: R-2.4-7
func TestAReadFenceHoldsARequestBackUntilEarlierReadsAreDone(t *testing.T) {
	for _, op := range []verbs.Op{verbs.OpWrite, verbs.OpSend, verbs.OpSendSE, verbs.OpImmediate} {
		t.Run(op.String(), func(t *testing.T) {
			bubble(t, reads, reads, func(t *testing.T, s *table) {
				s.b.receives(10, 2, 100)
				s.y.Hold()
				s.a.post(s.a.read(1, s.b, 0, 8))
				synctest.Wait()
				before := s.x.Written()
				fenced := verbs.SendWR{ID: 2, Op: op, Flags: verbs.Signaled | verbs.ReadFence, Remote: s.b.mr.Remote(0)}
				s.a.post(fenced, s.a.send(3, 0, 8))
				synctest.Wait()
				if n := s.x.Written() - before; n != 0 {
					t.Errorf("%d octets were sent past the fence", n)
				}
				s.y.Resume()
				wantDone(t, s.a.sendCQ, done{1, verbs.Success}, done{2, verbs.Success}, done{3, verbs.Success})
			})
		})
	}
}

// Verbs §8.2.2.3: the fence waits for everything, and nothing overtakes it.
//
// Claims: V-8.2.2.2-2
// Claims: V-9.3.1.1-16 V-9.3.1.1-17 V-8.2.2.2-3
func TestALocalFenceHoldsAnInvalidationBackUntilAllBeforeItIsDone(t *testing.T) {
	for _, fence := range []verbs.Flags{0, verbs.LocalFence} {
		t.Run(fmt.Sprintf("fence %v", fence != 0), func(t *testing.T) {
			bubble(t, reads, reads, func(t *testing.T, s *table) {
				mr := s.a.region(0, 100, allRights)
				s.y.Hold()
				s.a.post(s.a.read(1, s.b, 0, 8),
					verbs.SendWR{ID: 2, Op: verbs.OpInvalidate, Flags: verbs.Signaled | fence, Invalidate: mr.STag()},
					s.a.write(3, s.b, 1000, 8))
				synctest.Wait()
				if mr.Valid() != (fence != 0) {
					t.Errorf("valid is %v while the Read is outstanding", mr.Valid())
				}
				wantNone(t, s.a.sendCQ)
				s.y.Resume()
				wantDone(t, s.a.sendCQ, done{1, verbs.Success}, done{2, verbs.Success}, done{3, verbs.Success})
				if mr.Valid() {
					t.Error("it is valid after the completion")
				}
			})
		})
	}
}

// ORD stalls the queue and fails nothing; Reads and atomics count alike.
//
// Claims: R-6.1-6 R-6.1-8 X-5.2-1 X-5.2.2-8
// Claims: V-4-4
func TestNoMoreReadsAndAtomicsAreOutstandingThanORD(t *testing.T) {
	cfg := verbs.QPConfig{IRD: 3, ORD: 3}
	bubble(t, cfg, cfg, func(t *testing.T, s *table) {
		s.y.Hold()
		before := s.x.Written()
		add := s.a.read(2, s.b, 8, 8)
		add.Op = verbs.OpFetchAdd
		s.a.post(s.a.read(1, s.b, 0, 8), add, s.a.read(3, s.b, 16, 8), s.a.read(4, s.b, 24, 8), add, s.a.write(6, s.b, 100, 8))
		synctest.Wait()
		if n, want := s.x.Written()-before, 2*fpdu(readRequest)+fpdu(atomicRequest); n != want {
			t.Errorf("%d octets were sent before an answer, expected %d: two Read Requests and an Atomic Request", n, want)
		}
		s.y.Resume()
		wantDone(t, s.a.sendCQ, done{1, verbs.Success}, done{2, verbs.Success}, done{3, verbs.Success},
			done{4, verbs.Success}, done{2, verbs.Success}, done{6, verbs.Success})
	})
}

// Claims: R-5.5-17
// Claims: V-8.2.1-3
// Claims: V-4-3
// Claims: DDP-5.4-1
func TestAWriteIsNotCompleteBeforeTheTransportHasTakenIt(t *testing.T) {
	bubble(t, reads, reads, func(t *testing.T, s *table) {
		s.x.Hold() // the pipe has room for a part of it
		s.a.post(s.a.write(1, s.b, 0, 4*iwarptest.DefaultBuffer))
		synctest.Wait()
		wantNone(t, s.a.sendCQ)
		s.x.Resume()
		wantDone(t, s.a.sendCQ, done{1, verbs.Success})
	})
}

// When a receive completes, everything that the peer wrote before is in place.
//
// Claims: R-5.5-10 R-5.5-16 R-5.1-5 DDP-5.3-1
// Claims: V-8.2.2-8
// Claims: R-1.1-4 R-B-4 DDP-5.1.1-1 P-2-6 P-3.8-3
func TestAReceiveTellsThatEarlierWritesArePlaced(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		a, b := linked(t, w, reads, reads)
		rng := rand.New(rand.NewPCG(1, 2))
		for round := range 30 {
			check(t, b.qp.PostRecv(verbs.RecvWR{ID: uint64(round)}))
			n := 1 + rng.IntN(200000)
			for i := range n {
				a.buf[i] = byte(rng.Uint32())
			}
			k := rng.IntN(n)
			// Two Writes, the second over the end of the first.
			first := a.write(1, b, 0, n)
			second := verbs.SendWR{ID: 2, Op: verbs.OpWrite, Flags: verbs.Signaled, SGL: []verbs.SGE{a.mr.SGE(0, n-k)}, Remote: b.mr.Remote(k)}
			a.post(first, second, verbs.SendWR{ID: 3, Op: verbs.OpSend, Flags: verbs.Signaled})
			wantDone(t, b.recvCQ, done{uint64(round), verbs.Success})
			if !bytes.Equal(b.buf[:k], a.buf[:k]) || !bytes.Equal(b.buf[k:n], a.buf[:n-k]) {
				t.Fatalf("round %d: not all octets are in place", round)
			}
			wantDone(t, a.sendCQ, done{1, verbs.Success}, done{2, verbs.Success}, done{3, verbs.Success})
		}
	})
}

// The peer's consumer is not involved in Reads, atomics and Writes.
//
// Claims: R-5.2.1-3 R-5.2.1-4 R-5.5-12 R-5.5-20 R-5.5-25 R-5.2.2-4 X-5.2.1-15 X-5.2.1-16 X-5.4-5 X-5.4-7
// Claims: X-5.2.2-9
// Claims: V-8.2.2-10
// Claims: V-6.6.2.5-4
// Claims: R-1.2-8 R-3.2-9 R-5.5-13 R-B-6 X-7-14 D-7.5-1 P-2-7
func TestReadsAndAtomicsSeeWhatWasWrittenBefore(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		a, b := linked(t, w, reads, reads)
		for round := range 50 {
			copy(a.buf, fmt.Sprintf("%08d", round))
			read := verbs.SendWR{ID: 2, Op: verbs.OpRead, Flags: verbs.Signaled, SGL: []verbs.SGE{a.mr.SGE(100, 8)}, Remote: b.mr.Remote(0)}
			swap := verbs.SendWR{ID: 3, Op: verbs.OpCmpSwap, Flags: verbs.Signaled, SGL: []verbs.SGE{a.mr.SGE(200, 8)}, Remote: b.mr.Remote(0)}
			a.post(a.write(1, b, 0, 8), read, swap)
			wantDone(t, a.sendCQ, done{1, verbs.Success}, done{2, verbs.Success}, done{3, verbs.Success})
			for _, off := range []int{100, 200} {
				if !bytes.Equal(a.buf[off:off+8], a.buf[:8]) {
					t.Fatalf("round %d: %q was found where %q had been written", round, a.buf[off:off+8], a.buf[:8])
				}
			}
		}
		wantNone(t, b.sendCQ)
		wantNone(t, b.recvCQ)
	})
}

// Claims: R-5.5-11 R-5.2.1-7 R-5.2.1-8 R-5.2.1-11 R-5.2.2-3 R-5.2.2-7 R-5.5-23 R-6.1-5
// Claims: R-1.1-2 R-1.2-5
func TestReadsOfAllSizesCompleteInOrderWithTheirOctets(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		cfg := verbs.QPConfig{IRD: 16, ORD: 16, SendDepth: 64}
		a, b := linked(t, w, cfg, cfg)
		rng := rand.New(rand.NewPCG(3, 4))
		for i := range b.buf {
			b.buf[i] = byte(rng.Uint32())
		}
		sizes := []int{300000, 0, 1, 70000, 3, 4096, 0, 65536, 7}
		var wrs []verbs.SendWR
		var want []done
		off := 0
		for i := range 2 * len(sizes) { // no two into the same memory
			n := sizes[i%len(sizes)]
			wrs = append(wrs, a.read(uint64(i), b, off, n))
			want = append(want, done{uint64(i), verbs.Success})
			off += n
		}
		a.post(wrs...)
		for i := range want {
			wantDone(t, a.sendCQ, want[i])
			e := wrs[i].SGL[0]
			if !bytes.Equal(a.buf[e.TO:e.TO+uint64(e.Length)], b.buf[e.TO:e.TO+uint64(e.Length)]) {
				t.Fatalf("Read %d of %d octets has others", i, e.Length)
			}
		}
	})
}

// Sends of all kinds and Immediate Data are one sequence; an empty Send uses up
// a receive like any other.
//
// Claims: R-5.3-5 R-5.3-10 R-5.3-12 X-6.3-3 X-6.3-6
// Claims: V-8.1.1-2 V-8.1.2.1-3 V-8.2.2-1 V-8.2.2-7 V-9.3.1.1-1
// Claims: V-6.2.2-4 V-9.3.2.1-9 V-9.3.2.1-11 V-9.3.2.1-12
// Claims: V-9.3.2.1-5 V-9.5.2-1 V-7.8-1
// Claims: R-3.1-7 R-3.2-3 R-4-2 R-B-1 X-6.1-2 X-6.4-1 X-7-1 X-7-5 P-2-4
func TestMessagesArriveInTheOrderOfPosting(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		a, b := linked(t, w, verbs.QPConfig{SendDepth: 64}, verbs.QPConfig{RecvDepth: 64})
		kinds := []verbs.Op{verbs.OpSend, verbs.OpImmediate, verbs.OpSendSE, verbs.OpSendInvalidate, verbs.OpImmediateSE, verbs.OpSendSEInvalidate}
		var wrs []verbs.SendWR
		var tags []*verbs.MR
		for i := range 60 {
			n := i % 5 * 1000
			check(t, b.qp.PostRecv(verbs.RecvWR{ID: uint64(i), SGL: []verbs.SGE{b.mr.SGE(i*4000, 4000)}}))
			wr := verbs.SendWR{ID: uint64(i), Op: kinds[i%len(kinds)], Flags: verbs.Signaled}
			var mr *verbs.MR
			switch wr.Op {
			case verbs.OpImmediate, verbs.OpImmediateSE:
				wr.Immediate = [8]byte{byte(i), 7: byte(i)}
			case verbs.OpSendInvalidate, verbs.OpSendSEInvalidate:
				mr = b.region(0, 8, allRights)
				wr.Invalidate = mr.STag()
				fallthrough
			default:
				wr.SGL = []verbs.SGE{a.mr.SGE(i*10, n)}
			}
			tags = append(tags, mr)
			wrs = append(wrs, wr)
		}
		a.post(wrs...)
		for i, wc := range take(t, b.recvCQ, len(wrs)) {
			wr := &wrs[i]
			want := verbs.WC{ID: uint64(i), QP: b.qp, Op: verbs.OpRecv, Solicited: i%len(kinds) == 2 || i%len(kinds) >= 4}
			if len(wr.SGL) > 0 {
				want.Bytes = wr.SGL[0].Length
			} else {
				want.Op, want.Bytes, want.Immediate = verbs.OpRecvImmediate, 8, wr.Immediate
			}
			if mr := tags[i]; mr != nil {
				want.HasInvalidated, want.Invalidated = true, mr.STag()
				if mr.Valid() {
					t.Errorf("message %d did not invalidate its STag", i)
				}
			}
			if wc.ID != want.ID || wc.QP != want.QP || wc.Op != want.Op || wc.Status != verbs.Success || wc.Solicited != want.Solicited ||
				wc.Bytes != want.Bytes || wc.Immediate != want.Immediate || wc.HasInvalidated != want.HasInvalidated || wc.Invalidated != want.Invalidated {
				t.Errorf("message %d of kind %v: %+v, expected %+v", i, wr.Op, wc, want)
			}
		}
	})
}
